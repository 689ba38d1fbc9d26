"""Formats timestamps for the API."""

from datetime import UTC, datetime
from typing import overload


@overload
def iso(moment: datetime) -> str: ...
@overload
def iso(moment: None) -> None: ...
def iso(moment: datetime | None) -> str | None:
    """``2026-11-21T03:17:02.282Z``: UTC with milliseconds, the format of the reference and its clients."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
