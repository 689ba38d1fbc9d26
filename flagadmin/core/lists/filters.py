"""The parameters of the API's lists. Reports all invalid ones at once; ignores empty ones.

A list has one `ListFilter`. Its filters narrow the rows, both in the API and on the corresponding console page. Its
options, the fields of `Meta.form`, sort and page them. The OpenAPI document describes both.

Days and times in the browser's time zone: for ranges in the URL, and for headings of lists by day.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import django_filters
from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter

from flagadmin.core.errors import Problem, ValidationError, check_problems, choices

MAX_LENGTH = 1000
MAX_OFFSET = 2**31 - 1  # beyond the end of any list


class Option:
    """A field of a list's options. If the parameter is missing, its value is ``initial``.

    An invalid value counts as missing, because clients send values meant for other servers, unless it ``is_strict``.
    """

    initial: Any
    valid_values: Any = ""  # for the error of a strict field

    def __init__(self, *, is_strict: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)  # type: ignore[call-arg]
        self.is_strict = is_strict

    def clean(self, value: Any) -> Any:
        try:
            cleaned = super().clean(value)  # type: ignore[misc]
        except forms.ValidationError:
            if self.is_strict:
                raise forms.ValidationError(f"must be {self.valid_values}, not {value!r}") from None
            return self.initial
        return self.initial if cleaned in (None, "") else cleaned


class WholeNumber(Option, forms.IntegerField):
    def to_python(self, value: Any) -> int | None:
        """Refuses spellings that only Python reads as numbers: `1_0`, and digits of other scripts."""
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)

    @property
    def valid_values(self) -> str:
        limits = f", {self.min_value} or greater"
        if self.max_value is not None:
            limits = f" from {self.min_value} to {self.max_value}"
        return f"a whole number{limits}"

    @property
    def openapi_type(self) -> Any:
        limits = {"minimum": self.min_value, "maximum": self.max_value}
        bounds = {name: limit for name, limit in limits.items() if limit is not None}
        return {"type": "integer", **bounds} if self.is_strict else int


class Direction(Option, forms.ChoiceField):
    valid_values = "one of asc, desc"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=[("asc", "asc"), ("desc", "desc")], initial="asc", **kwargs)


class Text(Option, forms.CharField):
    pass


class ListFilter(django_filters.FilterSet):
    """``Meta.form`` has the list's options, among them ``offset`` and ``limit``."""

    once_only: ClassVar[bool] = False  # whether a parameter that is sent twice is an error

    def filter_queryset(self, rows: QuerySet) -> QuerySet:
        for name, list_filter in self.filters.items():  # the form's other fields are options
            rows = list_filter.filter(rows, self.form.cleaned_data[name])
        return rows

    @classmethod
    def narrow(cls, rows: QuerySet, **values: Any) -> QuerySet:
        """The rows that match these values of filters, which have been validated."""
        for name, value in values.items():
            rows = cls.base_filters[name].filter(rows, value)
        return rows

    def check(self) -> dict[str, Any]:
        """The values of all parameters. Raises ValidationError with all invalid ones."""
        check_problems(self.problems())
        return self.form.cleaned_data

    def problems(self) -> Iterator[Problem]:
        data: QueryDict = self.data
        yield from find_unknown_parameters(data, self.known)
        if self.once_only:
            repeated = [name for name in data if name in self.known and len(data.getlist(name)) > 1]
            yield from (Problem(name, "must be given only once") for name in repeated)
        for name, texts in self.form.errors.items():
            yield from (Problem(name, text) for text in texts)

    @property
    def known(self) -> list[str]:
        """The names that parameters may have."""
        return list(self.form.fields)

    def cut_page(self, rows: QuerySet) -> QuerySet:
        """The rows of the requested page."""
        start = min(self.form.cleaned_data["offset"], MAX_OFFSET)
        return rows[start : start + self.form.cleaned_data["limit"]]

    def total(self, page: Sequence[Any]) -> int:
        """The number of all rows. Counted only if it does not follow from the page."""
        start, limit = self.form.cleaned_data["offset"], self.form.cleaned_data["limit"]
        if len(page) < limit and (page or not start):
            return int(start) + len(page)
        return self.qs.count()

    @classmethod
    def parameters(cls) -> list[OpenApiParameter]:
        """The list's parameters in the OpenAPI document."""
        filters = {name: list_filter.field for name, list_filter in cls.base_filters.items()}
        return [
            _make_parameter(name, field) for name, field in (filters | cls._meta.form.base_fields).items()
        ]


def _make_parameter(name: str, field: Any) -> OpenApiParameter:
    return OpenApiParameter(
        name,
        getattr(field, "openapi_type", str),
        description=str(field.help_text),
        default=field.initial,
        enum=[key for key, _ in getattr(field, "choices", ())] or None,
        many=getattr(field, "many", None),
    )


def find_unknown_parameters(names: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    """A problem for each unknown name: ignoring it would return rows that the client meant to exclude."""
    known = list(known)
    for name in names:
        if name not in known:
            yield Problem(name, f"is not a valid parameter. Available: {choices(known)}.")


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
