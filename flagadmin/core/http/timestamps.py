"""Formats timestamps for the API."""

from datetime import UTC, datetime
from typing import overload


@overload
def iso(moment: datetime) -> str: ...
@overload
def iso(moment: None) -> None: ...
def iso(moment: datetime | None) -> str | None:
    """``2026-11-21T03:17:02.282Z``: UTC with milliseconds, the format of the reference and its clients.

    With microseconds if there are any: a client that sends it back as ``at`` means that very moment.
    """
    if moment is None:
        return None
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
