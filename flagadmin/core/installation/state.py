"""Caches the installation's settings in each process, so that requests need not read them.

A change takes effect at once in the process that makes it, and within SECONDS in the others.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connections

from flagadmin.core.db.outages import reach
from flagadmin.core.installation.models import ROW, Installation

SECONDS = 2.0


@dataclass(slots=True)
class _Remembered:
    is_in_maintenance: bool = False
    frontend_origins: Sequence[str] | None = None
    until: float = 0.0
    is_asked: bool = False
    """Whether the event loop has asked since the last reading ahead."""


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
    """The same without a query; None if it may be out of date. `keep_origins` has them read again ahead of that."""
    _remembered.is_asked = True
    if time.monotonic() >= _remembered.until and not reach.is_lost:
        return None
    return _choose_origins(_remembered)


async def keep_origins() -> None:
    """A task of the event loop: reads the settings again before they are out of date, while somebody asks."""
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
    """Call it after a change has been committed, and before an answer that must not be older than the request."""
    _remembered.until = 0.0


def _read_current() -> _Remembered:
    """While the database is away, what was last read."""
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
