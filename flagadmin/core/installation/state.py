"""Caches the installation's settings in each process, so that requests need not read them.

A change takes effect at once in the process that makes it, and within SECONDS in the others.

Maintenance mode refuses changes: every change records an audit event in its transaction, and recording one is refused.
Work without events continues: SDKs, their reports, reading. Logins are recorded but still allowed, so that an admin
can log in to end the maintenance (`in_maintenance` in `flagadmin/core/audit/events.py`).
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connection, connections

from flagadmin.core.db.outages import reach
from flagadmin.core.db.transactions import find_action
from flagadmin.core.errors import MaintenanceMode
from flagadmin.core.installation.models import ROW, Installation

SECONDS = 2.0


@dataclass(slots=True)
class _Remembered:
    is_in_maintenance: bool = False
    frontend_origins: Sequence[str] | None = None
    until: float = 0.0
    is_asked: bool = False
    """Whether the event loop has asked since the last refresh."""


_remembered = _Remembered()


def is_in_maintenance() -> bool:
    """Whether maintenance mode is on, for display. `maintenance.check_writable` decides."""
    return _read_current().is_in_maintenance


def read_frontend_origins() -> Sequence[str]:
    """The origins whose pages may call the frontend API and OFREP; ``*`` stands for all."""
    return _choose_origins(_read_current())


def _choose_origins(remembered: _Remembered) -> Sequence[str]:
    changed = remembered.frontend_origins
    return settings.FRONTEND_API_ORIGINS if changed is None else changed


def get_remembered_origins() -> Sequence[str] | None:
    """The same without a query; None if it may be out of date. `keep_origins` refreshes it ahead of that."""
    _remembered.is_asked = True
    if time.monotonic() >= _remembered.until and not reach.is_lost:
        return None
    return _choose_origins(_remembered)


async def keep_origins() -> None:
    """A task of the event loop that refreshes the settings before they are out of date, while requests use them."""
    while True:
        await asyncio.sleep(SECONDS / 2)
        if _remembered.is_asked:
            _remembered.is_asked = False
            await asyncio.to_thread(_read_again)


def _read_again() -> None:
    try:
        _read(time.monotonic())
    finally:
        connections.close_all()


def forget() -> None:
    """Call it after a commit, and before an answer that must not be older than the request."""
    _remembered.until = 0.0


def _read_current() -> _Remembered:
    """The settings; during an outage of the database, the last ones read."""
    now = time.monotonic()
    if now >= _remembered.until and not reach.is_lost:
        _read(now)
    return _remembered


def _read(now: float) -> None:
    _remembered.until = now + SECONDS
    try:
        row = Installation.objects.filter(pk=ROW).first() or Installation()
    except DatabaseError:
        return
    _remembered.is_in_maintenance = row.is_in_maintenance
    _remembered.frontend_origins = row.frontend_origins


# An arbitrary lock id. A change holds it shared until its end, so that no change is still being written once
# maintenance mode is on.
_LOCK = 5_172_033
WAIT = "10s"
_CHECK = "SELECT pg_advisory_xact_lock_shared(%s); SELECT is_in_maintenance FROM installation_installation"


def check_writable() -> None:
    """Raises MaintenanceMode. Otherwise, maintenance mode cannot start before the end of this transaction."""
    if (action := find_action()) is not None and action.ignores_maintenance:
        return
    with connection.cursor() as cursor:
        # Two statements, sent at once: the second must see commits made while the first waited for the lock.
        cursor.execute(_CHECK, [_LOCK])
        cursor.nextset()
        row = cursor.fetchone()
    if row and row[0]:
        raise MaintenanceMode


def ignore_maintenance() -> None:
    """For actions of logins, which create or update accounts, and of the start of a server."""
    if (action := find_action()) is not None:
        action.ignores_maintenance = True


def await_changes() -> None:
    """Waits for changes that are being written. Later ones wait for the end of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [WAIT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
