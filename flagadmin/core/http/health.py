"""Liveness and readiness probes."""

import logging
import os
import time
import uuid
from collections import deque
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import Counter
from psycopg_pool import PoolTimeout

from flagadmin.core.db.outages import reach, replica
from flagadmin.core.db.standby import CommitInDoubt, CommitRefused, standby
from flagadmin.core.errors import Busy, DiskFull, NoStandby, NotConfirmed, ServiceUnavailable

log = logging.getLogger("flagadmin.health")

BUSY = Counter(
    "flagadmin_busy_total", "Requests refused because all database connections of the process were in use."
)

MIN_FREE_BYTES = 32_000_000  # a segment of PostgreSQL's write-ahead log takes 16 MB
DISK_FULL_SECONDS = 60.0

# When the database last reported a full disk.
_disk_full_errors: deque[float] = deque(maxlen=1)


@require_safe
def healthz(request: HttpRequest) -> HttpResponseBase:
    """200 as long as the process responds."""
    return JsonResponse({"health": "GOOD"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponseBase:
    """200 if the database is available, migrated and has disk space, else 503 with an error record.

    Also 200 while the database cannot be reached and SDKs are answered from memory, or while changes are refused
    because its standby is missing: all installations share the database, and a load balancer that removed all of them
    would leave clients without an answer.
    """
    try:
        waiting = list_unapplied_migrations()
    except DatabaseError as error:
        if reach.is_lost and (age := reach.get_age()) is not None:
            return JsonResponse({"health": "DEGRADED", "secondsWithoutDatabase": int(age)})
        return _not_ready(unavailable(error))
    if _has_no_space():
        return _not_ready(DiskFull())
    if waiting:
        return _not_ready(ServiceUnavailable(f"Unapplied migrations: {', '.join(waiting)}."))
    return JsonResponse(_read_health())


def _read_health() -> dict[str, Any]:
    """Reads the health of a serving server, which may lack a standby or a replica."""
    missing = {"no standby": standby.is_missing, "no replica": replica.is_lost}
    reasons = [reason for reason, is_so in missing.items() if is_so]
    return {"health": "DEGRADED", "reasons": reasons} if reasons else {"health": "GOOD"}


def unavailable(error: BaseException) -> ServiceUnavailable:
    """The error for a database failure, with its reason if known."""
    if isinstance(error, CommitInDoubt):
        return NotConfirmed()
    if isinstance(error, CommitRefused):
        return NoStandby()
    if getattr(error.__cause__, "sqlstate", None) == psycopg.errors.DiskFull.sqlstate:
        _disk_full_errors.append(time.monotonic())
    if isinstance(error.__cause__, PoolTimeout) and _was_reached_meanwhile():
        BUSY.inc()
        return Busy()
    return DiskFull() if _has_no_space() else ServiceUnavailable()


def _was_reached_meanwhile() -> bool:
    """Whether the watcher has reached the database while a request waited for a connection."""
    return not reach.is_lost and reach.count_seconds_without() < settings.DATABASE_SECONDS


def _has_no_space() -> bool:
    """Whether the bundled database's disk is full, or any database reported a full disk recently."""
    if any(time.monotonic() - then < DISK_FULL_SECONDS for then in _disk_full_errors):
        return True
    data_dir = connection.settings_dict["OPTIONS"].get("data_dir")
    if data_dir is None:
        return False
    disk = os.statvfs(data_dir)
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


def _not_ready(error: ServiceUnavailable) -> JsonResponse:
    error_id = str(uuid.uuid4())
    log.warning("Not ready %s: %s", error_id, error.message)
    return JsonResponse(error.record(error_id), status=error.status)


def list_unapplied_migrations() -> list[str]:
    """The names of unapplied migrations."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
