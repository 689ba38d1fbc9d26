"""Suggests replacements for numbers and dates that SDKs cannot read.

The reference accepts everything that JavaScript reads, so its exports contain such values; in SDKs they never match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime

from playground.engine.literals import to_text

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_OTHER_BASE = re.compile(r"0(?:[xX][0-9a-fA-F]{1,13}|[oO][0-7]{1,17}|[bB][01]{1,52})", re.ASCII)
_EPOCH = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_OVERFLOW = re.compile(r"([0-9]{4}-[0-9]{2})-(29|30|31)(.*)", re.ASCII)
_DAY_NAME = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*", re.ASCII | re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = r"(?P<year>[0-9]{4})"
_DAY = r"(?P<day>[0-9]{1,2})"
_NAME = r"(?P<name>[A-Za-z]{3,9})"
_MONTH = r"(?P<month>[0-9]{1,2})"
_TIME = (
    r"(?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?: (?P<half>AM|PM))?(?: GMT(?P<zone>[+-][0-9]{4}))?)?"
)
# Not `strptime`, which recompiles its formats again and again: a large import may have many odd dates.
_WRITTEN = [
    re.compile(rf"{_NAME} {_DAY} {_YEAR}{_TIME}"),
    re.compile(rf"{_DAY} {_NAME} {_YEAR}{_TIME}"),
    re.compile(rf"{_YEAR}[-/.]{_MONTH}(?:[-/.]{_DAY})?{_TIME}"),
    re.compile(rf"{_MONTH}/{_DAY}/{_YEAR}{_TIME}"),
    re.compile(rf"{_YEAR}{_TIME}"),
]


def suggest_number(text: str) -> str | None:
    if _OTHER_BASE.fullmatch(text):
        return str(int(text, 0))
    return to_text(float(text)) if _DECIMAL.fullmatch(text) else None


def suggest_date(text: str) -> str | None:
    """Suggests a date. A time without a zone is in UTC. Ten digits are seconds since 1970, other numbers are
    milliseconds.
    """
    try:
        moment = next(_read_times(text), None)
        if moment is None:
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return None


def _read_times(text: str) -> Iterator[datetime]:
    iso = text.upper().removeprefix("+00")
    with suppress(ValueError):
        yield datetime.fromisoformat(iso)
    if _EPOCH.fullmatch(text):
        seconds = int(text) if len(text) == 10 else int(text) / 1000
        yield datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
    if "T24:00" in iso:
        with suppress(ValueError):
            yield datetime.fromisoformat(iso.replace("T24:00", "T00:00")) + timedelta(days=1)
    if overflow := _OVERFLOW.fullmatch(iso):  # JavaScript reads 31 June as 1 July
        month, day, rest = overflow.groups()
        with suppress(ValueError):
            yield datetime.fromisoformat(f"{month}-01{rest}") + timedelta(days=int(day) - 1)
    yield from _read_written_out(text)


def _read_written_out(text: str) -> Iterator[datetime]:
    text = text.partition(" (")[0]  # JavaScript appends the name of the zone
    words = [word for word in text.replace(",", " ").split() if not _DAY_NAME.fullmatch(word)]
    if words and words[-1] in ("UTC", "GMT", "Z"):
        words.pop()
    for form in _WRITTEN:
        if match := form.fullmatch(" ".join(words)):
            with suppress(ValueError):
                yield _make_time(match.groupdict())
    with suppress(ValueError):
        yield parsedate_to_datetime(text)


def _make_time(parts: dict[str, str | None]) -> datetime:
    """The moment of a match. Raises ValueError if it does not exist."""
    hour = int(parts["hour"] or 0)
    if parts["half"]:
        hour = hour % 12 + 12 * (parts["half"] == "PM")
    name, zone = parts.get("name"), parts["zone"]
    month = _MONTHS.index(name[:3].lower()) + 1 if name else int(parts.get("month") or 1)
    day = datetime(int(parts["year"] or 0), month, int(parts.get("day") or 1), tzinfo=_read_zone(zone))
    return day.replace(hour=hour, minute=int(parts["minute"] or 0), second=int(parts["second"] or 0))


def _read_zone(text: str | None) -> tzinfo:
    return datetime.strptime(text, "%z").tzinfo or UTC if text else UTC
