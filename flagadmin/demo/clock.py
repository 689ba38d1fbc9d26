"""Dates the demo's changes in the past."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

from flagadmin.core.audit.record import MOMENT
from flagadmin.core.db.statements import execute
from flagadmin.core.http.logs import request_id


@contextmanager
def at(moment: datetime, request: str = "") -> Iterator[None]:
    """Makes actions inside happen at that moment, as one change.

    Use it only in a transaction, in a process that does nothing else.
    """
    real, token = timezone.now, request_id.set(request or f"demo-{moment:%Y%m%d%H%M%S}")
    setattr(timezone, "now", lambda: moment)  # noqa: B010 - mypy forbids the assignment
    _set_moment(moment.isoformat())
    try:
        yield
    finally:
        setattr(timezone, "now", real)  # noqa: B010
        _set_moment("")
        request_id.reset(token)


def _set_moment(text: str) -> None:
    execute("SELECT set_config(%s, %s, true)", [MOMENT, text])
