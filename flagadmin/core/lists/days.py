"""Days and times in the browser's time zone: for ranges in the URL, and for headings of lists by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.http import HttpRequest, QueryDict
from django.utils import timezone

from flagadmin.core.errors import ValidationError

FIRST, LAST = "from", "to"
"""The URL parameters of a range, ``2026-11-21`` or ``2026-11-21T14:30``. The whole day or minute is included."""
FIRST_TIME, LAST_TIME = "from-time", "to-time"
"""Times on those days, as forms send them. Without a day, today applies."""
PARAMETERS = (FIRST, LAST, FIRST_TIME, LAST_TIME)


def read_zone(request: HttpRequest) -> tzinfo:
    """The browser's zone; UTC if it is unknown."""
    return find_zone(request) or UTC


def find_zone(request: HttpRequest) -> ZoneInfo | None:
    """The zone in the browser's cookie, which js/times.js sets; None if it is missing or unknown here."""
    return _find_zone(request.COOKIES.get("zone", "")[:64])


@lru_cache(maxsize=1024)
def _find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown (a KeyError), or not the name of a zone
        return None


@dataclass(frozen=True, slots=True)
class End:
    """A day of the URL, or a time of that day."""

    day: date
    time: time | None

    @property
    def time_text(self) -> str:
        """``14:30``, ``14:30:05``, or "" for a whole day."""
        return self.time.isoformat("seconds" if self.time.second else "minutes") if self.time else ""

    def __str__(self) -> str:
        return f"{_shorten(self.day)} {self.day.year} {self.time_text}".strip()

    def begin(self, zone: tzinfo) -> datetime:
        return datetime.combine(self.day, self.time or time(), zone)

    def end(self, zone: tzinfo) -> datetime:
        """Exclusive. A day may have 23 or 25 hours, so it ends where the next one begins."""
        if self.time is None:
            return End(self.day + timedelta(days=1), None).begin(zone)
        precision = timedelta(seconds=1) if self.time.second else timedelta(minutes=1)
        return self.begin(zone).astimezone(UTC) + precision


@dataclass(frozen=True, slots=True)
class DateRange:
    """The days and times of the URL, both inclusive; None where it is open."""

    first: End | None
    last: End | None
    today: date
    zone: tzinfo

    @classmethod
    def of(cls, query: QueryDict, zone: tzinfo) -> "DateRange":
        """Reads the range from the URL. Raises ValidationError for an invalid date or time."""
        today = timezone.now().astimezone(zone).date()
        first, last = (_end(query, *names, today, zone) for names in ((FIRST, FIRST_TIME), (LAST, LAST_TIME)))
        return cls(first, last, today, zone)

    @property
    def since(self) -> datetime | None:
        return self.first.begin(self.zone) if self.first else None

    @property
    def until(self) -> datetime | None:
        """Exclusive: midnight after the last day, or the end of the last minute or second."""
        return self.last.end(self.zone) if self.last else None

    @property
    def days(self) -> tuple[date | None, date | None]:
        """The days of the range; None for an end that is open or includes a time."""
        first, last = (None if end is None or end.time else end.day for end in (self.first, self.last))
        return first, last

    @property
    def text(self) -> str:
        """``15 – 21 Nov 2026``, ``21 Nov 2026 14:30 – 21 Nov 2026 15:00``; "" if it is open at both ends."""
        if any(end and end.time for end in (self.first, self.last)):
            return self._format_times()
        first, last = self.days
        if first and last:
            years = first.strftime("%Y"), last.strftime("%Y")
            begin = (
                ""
                if first == last
                else _shorten(first, month=first.month != last.month or years[0] != years[1])
            )
            return f"{begin} – {_shorten(last)} {last.year}" if begin else f"{_shorten(last)} {last.year}"
        if first:
            return f"Since {_shorten(first)} {first.year}"
        return f"Until {_shorten(last)} {last.year}" if last else ""

    def _format_times(self) -> str:
        if self.first and self.last:
            return f"{self.first} – {self.last}"
        return f"Since {self.first}" if self.first else f"Until {self.last}"

    @property
    def usual(self) -> Sequence[tuple[str, date, date]]:
        """The ranges offered to the user: (label, first day, last day)."""
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


def _shorten(day: date, *, month: bool = True) -> str:
    return f"{day.day} {day:%b}" if month else str(day.day)


def _end(query: QueryDict, name: str, time_name: str, today: date, zone: tzinfo) -> End | None:
    text = query.get(name, "").strip()
    if at := query.get(time_name, "").strip():
        text = f"{text or today}T{at}"
    if not text:
        return None
    try:
        end = _parse_end(text, zone)
    except (ValueError, OverflowError):
        end = None
    if end is None or not 1970 <= end.day.year < 9000:
        raise ValidationError.at(
            name, f"must be a date or time like 2026-11-21 or 2026-11-21T14:30, not {text[:100]}"
        )
    return end


def _parse_end(text: str, zone: tzinfo) -> End:
    """Converts a time with an offset, as found in logs. Raises ValueError, OverflowError."""
    if len(text) <= len("2026-11-21"):
        return End(date.fromisoformat(text), None)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(zone)
    return End(moment.date(), moment.time().replace(microsecond=0))
