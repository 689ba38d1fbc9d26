"""Lets the demo's data have a past."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

from flagadmin.http.logs import request_id


@contextmanager
def at(moment: datetime, request: str = "") -> Iterator[None]:
    """Within this, actions happen at that moment, as one change. Only for a process that does nothing else."""
    real, token = timezone.now, request_id.set(request or f"demo-{moment:%Y%m%d%H%M%S}")
    setattr(timezone, "now", lambda: moment)  # noqa: B010 - mypy forbids the assignment
    try:
        yield
    finally:
        setattr(timezone, "now", real)  # noqa: B010
        request_id.reset(token)
