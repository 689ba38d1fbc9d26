"""Ids for the versions of an SDK token's flags: integers below 2^32, equal on every worker and machine.

An id is at least its time of creation, in seconds since 1970, so that ids made after a restore are larger than all
earlier ones. No two scopes share an id: if a token's projects change, the SDK's old id is unknown, and it gets
everything.
"""

from collections.abc import Mapping
from datetime import timedelta

import orjson
from django.db import connection
from django.utils import timezone

from flagadmin.core.db.standby import committed_locally, standby, wait_for_no_standby
from flagadmin.core.db.transactions import transactional
from projects.models import SdkVersion
from projects.revision import read_revisions

# An arbitrary key for an advisory lock that serializes the creation of ids.
LOCK = 7_325_003
SEEN_STEP = timedelta(days=1)
KEPT = timedelta(days=60)

_NEXT = """
INSERT INTO projects_sdkversion (scope, version, revisions, seen_at)
SELECT %(scope)s, greatest(coalesce(max(version), 0) + 1, extract(epoch FROM clock_timestamp())::bigint),
       %(revisions)s, now()
  FROM projects_sdkversion
    ON CONFLICT (scope) DO UPDATE
   SET version = excluded.version, revisions = excluded.revisions, seen_at = excluded.seen_at
RETURNING version
"""


class Outdated(Exception):
    """Another worker has already seen a later state than these revisions."""


def get_version_id(scope: str, revisions: Mapping[str, int]) -> int:
    """The id of the state of a scope in which its projects have these revisions. Raises Outdated.

    Writes only if they differ from the last ones that any worker read. Do not use it inside a transaction that has
    already read something, which would not see concurrent writes.
    """
    stored = _read_version(scope)
    if stored is None or stored.revisions != revisions:
        return _store_next_id(scope, dict(revisions))
    if timezone.now() - stored.seen_at > SEEN_STEP:
        with committed_locally():
            SdkVersion.objects.filter(pk=scope).update(seen_at=timezone.now())
    return stored.version


def read_latest_id(scope: str) -> int:
    """The latest id given to the scope by any worker; 0 if there is none."""
    stored = _read_version(scope)
    return stored.version if stored else 0


def forget_unused() -> None:
    """Deletes ids that were not used for KEPT. By then, the time is later than the id."""
    SdkVersion.objects.filter(seen_at__lt=timezone.now() - KEPT).delete()


def _read_version(scope: str) -> SdkVersion | None:
    return SdkVersion.objects.filter(pk=scope).first()


@transactional
def _store_next_id(scope: str, revisions: dict[str, int]) -> int:
    if standby.is_missing:
        wait_for_no_standby()  # no standby could confirm it, and SDKs only read
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        stored = _read_version(scope)
        if stored is not None:
            if stored.revisions == revisions:
                return stored.version
            if not _is_later(revisions, stored.revisions):
                raise Outdated
        cursor.execute(_NEXT, {"scope": scope, "revisions": _json(revisions)})
        return int(cursor.fetchone()[0])


def _is_later(revisions: Mapping[str, int], known: Mapping[str, int]) -> bool:
    """Whether these different ``revisions`` were read later than the known ones.

    A project's revision only grows, so any common project decides. A project that only one of them has was created or
    deleted in between, which its present existence shows.
    """
    for project in revisions.keys() & known.keys():
        if revisions[project] != known[project]:
            return revisions[project] > known[project]
    created_or_deleted = revisions.keys() ^ known.keys()
    existing = read_revisions(created_or_deleted).keys()
    return all((project in revisions) == (project in existing) for project in created_or_deleted)


def _json(revisions: Mapping[str, int]) -> str:
    return orjson.dumps(revisions).decode()
