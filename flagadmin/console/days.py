"""Days in the browser's time zone: for date ranges in the URL, and for headings of lists by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.http import HttpRequest, QueryDict
from django.utils import timezone

from flagadmin.errors import ValidationError

FIRST, LAST = "from", "to"
"""The URL parameters of a date range. Both are inclusive."""


def zone_of(request: HttpRequest) -> tzinfo:
    """The zone in the browser's cookie, which app.js sets; UTC without one."""
    return _zone(request.COOKIES.get("zone", "")[:64])


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):  # unknown, or not the name of a zone
        return UTC


@dataclass(frozen=True, slots=True)
class DateRange:
    """The days of the URL, both inclusive; None where it is open."""

    first: date | None
    last: date | None
    today: date
    zone: tzinfo

    @classmethod
    def of(cls, given: QueryDict, zone: tzinfo) -> "DateRange":
        """Raises ValidationError for what is not a date."""
        today = timezone.now().astimezone(zone).date()
        return cls(_date(given, FIRST), _date(given, LAST), today, zone)

    @property
    def since(self) -> datetime | None:
        return self._midnight(self.first) if self.first else None

    @property
    def until(self) -> datetime | None:
        """Exclusive: midnight after the last day."""
        return self._midnight(self.last + timedelta(days=1)) if self.last else None

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone)

    @property
    def text(self) -> str:
        """``15 – 21 Nov 2026``; "" if it is open at both ends."""
        first, last = self.first, self.last
        if first and last:
            same = first.strftime("%Y"), last.strftime("%Y")
            begin = (
                "" if first == last else _short(first, month=first.month != last.month or same[0] != same[1])
            )
            return f"{begin} – {_short(last)} {last.year}" if begin else f"{_short(last)} {last.year}"
        if first:
            return f"Since {_short(first)} {first.year}"
        return f"Until {_short(last)} {last.year}" if last else ""

    @property
    def usual(self) -> Sequence[tuple[str, date, date]]:
        """Ranges that are offered: (label, first day, last day)."""
        yesterday = self.today - timedelta(days=1)
        return (
            ("Today", self.today, self.today),
            ("Yesterday", yesterday, yesterday),
            ("7 days", self.today - timedelta(days=6), self.today),
            ("30 days", self.today - timedelta(days=29), self.today),
        )

    def heading(self, day: date) -> tuple[str, str]:
        """``("Today", "Saturday 21 November")``; a day of another year or month has no first word."""
        words = {self.today: "Today", self.today - timedelta(days=1): "Yesterday"}
        year = "" if day.year == self.today.year else f" {day.year}"
        text = f"{day:%A} {day.day} {day:%B}{year}"
        return (words[day], text) if day in words else (text, "")


def _short(day: date, *, month: bool = True) -> str:
    return f"{day.day} {day:%b}" if month else str(day.day)


def _date(given: QueryDict, name: str) -> date | None:
    text = given.get(name, "").strip()
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        day = date.max
    if day is not None and not 1970 <= day.year < 9000:
        raise ValidationError.at(name, f"must be a date like 2026-11-21, not {text[:100]}")
    return day
