"""Deletes old versions if FLAGADMIN_VERSIONS_DAYS limits them. Their moments are unknown then; the audit log stays."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.errors import MaintenanceMode
from flagadmin.core.hook import load_added
from flagadmin.core.installation.state import check_writable
from projects.models.versions import BEGINNING, VERSIONS, VersionsSince

log = logging.getLogger("flagadmin.projects")

NEEDED = "projects.history.retention.needed"
"""A collection of functions that return moments: versions are needed from the earliest on."""
BATCH = 5_000


def drop_versions() -> int:
    """Deletes versions that ended before ``VersionsSince.since``, and moves that ahead. Returns their number.

    Moves it last: readers who still knew an earlier moment read its versions until the next call, an hour later. Does
    nothing until the past before the upgrade to 1.4.0 has been stored.
    """
    try:
        check_writable()
    except MaintenanceMode:
        return 0
    limited = VersionsSince.objects.filter(since__gt=F("kept_since"))
    since = limited.values_list("since", flat=True).first()
    removed = sum(_delete(versions._meta.db_table, since) for versions in VERSIONS.values()) if since else 0
    if removed:
        log.info("Deleted %s versions that ended before %s.", removed, since)
    if settings.VERSIONS_DAYS:
        _limit(timezone.now() - timedelta(days=settings.VERSIONS_DAYS))
    return removed


def _delete(table: str, since: datetime) -> int:
    """Each batch is a transaction of its own."""
    removed = 0
    while count := execute(
        f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608 - names of our own
        f"SELECT ctid FROM {table} WHERE valid_to <= %s LIMIT {BATCH}))",
        [since],
    ):
        removed += count
    return removed


def _limit(wanted: datetime) -> None:
    """Makes earlier moments unknown, but none that is needed."""
    since = min([wanted, *(moment for find in load_added(NEEDED) for moment in find())])
    if not VersionsSince.objects.exists():
        VersionsSince.objects.create(since=since, kept_since=BEGINNING)
    is_complete = Q(since=BEGINNING) | Q(since__gt=F("kept_since"))
    VersionsSince.objects.filter(is_complete, since__lt=since, kept_since__lt=since).update(since=since)
