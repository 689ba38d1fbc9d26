"""The sentences and phrases of reasons, for the API and for pages. Sentences have no full stop at the end.

Values are cut after SHOWN_LENGTH characters, lists after SHOWN_VALUES members, with "…". Invisible characters are
named: different values must not look the same, nor reverse the rest of a sentence.

Suggests replacements for numbers and dates that SDKs cannot read.

The reference accepts everything that JavaScript reads, so its exports contain such values; in SDKs they never match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime

from playground.engine.literals import MAX_LENGTH, to_text
from playground.engine.operators import OPERATORS, find_problem

SHOWN_LENGTH = 80
SHOWN_VALUES = 5
SHOWN_STRATEGIES = 3

NO_STRATEGIES = "It has no strategy, so it is on for everyone"
ALL_DISABLED = "All its strategies are disabled"
ALL_HOLD = "All conditions hold, but "
"""Placed before the sentence of a bucket outside the rollout, if the strategy has conditions."""
FOR_EVERYONE = "On for everyone"
NOT_EVALUATED = "It is disabled, so it is not evaluated"
SWITCHED_OFF_DETAIL = "switched off"


def shorten_value(text: str) -> str:
    """A value in a sentence: cut to SHOWN_LENGTH, and quoted if it has surrounding spaces; "empty" if it is empty."""
    if not text:
        return "empty"
    return quote_value(text) if text != text.strip() else _cut(text)


def _cut(text: str) -> str:
    return name_unseen(text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…")


def name_unseen(text: str) -> str:
    """The text with a number for each invisible or direction-changing character: ``vip<U+200B>``."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


def capitalize(phrase: str) -> str:
    """Capitalizes our own phrase at the start of a sentence. Names of context fields keep their case."""
    return phrase[0].upper() + phrase[1:]


def quote_value(text: str) -> str:
    return f'"{_cut(text)}"'


def list_values(values: Sequence[str]) -> str:
    """A list of values: "US, DE", at most SHOWN_VALUES. Values with commas or surrounding spaces are quoted."""
    texts = [quote_value(value) if "," in value else shorten_value(value) for value in values[:SHOWN_VALUES]]
    if len(values) > SHOWN_VALUES:
        texts.append(f"… ({len(values)} in all)")
    return ", ".join(texts) if texts else "nothing"


def unmet_phrase(operator: str, values: Sequence[str], *, inverted: bool) -> str:
    """The end of the sentence of a constraint that fails: ", needs a version above 5.0.0"."""
    if operator in ("IN", "NOT_IN"):
        among = "one of" if (operator == "IN") is not inverted else "none of"
        return f", needs {among} {list_values(values)}"
    described = OPERATORS[operator]
    expected = f"{described.noun} {described.relation} {list_values(values)}"
    return f", needs anything but {expected}" if inverted else f", needs {expected}"


def met_phrase(operator: str, values: Sequence[str], *, inverted: bool) -> str:
    """The addition to the value of a constraint that holds: " (above 4.2.0)", " (at least 30)"; "" for IN."""
    if operator in ("IN", "NOT_IN"):
        return "" if (operator == "IN") is not inverted else f" (not {list_values(values)})"
    phrase = f"{OPERATORS[operator].relation.removeprefix('of ')} {list_values(values)}"
    return f" (not {phrase})" if inverted else f" ({phrase})"


def suggestion(value: str | None) -> str:
    """A suggestion to follow a constraint with a value that SDKs cannot read; empty without one."""
    return "" if value is None else f"; SDKs never match it, {value} was probably meant"


def value_phrase(field: str, text: str | None) -> str:
    """The start of a constraint's sentence: "country is NO" or "country was not given"."""
    return f"{field} was not given" if text is None else f"{field} is {shorten_value(text)}"


def subject_phrase(field: str, text: str) -> str:
    """Names the subject that was assigned to a bucket: "userId 42"."""
    return f"{field} {shorten_value(text)}"


def describe_bucket(subject: str, bucket: int) -> str:
    """ "userId 42 is in bucket 53", continued by INSIDE or OUTSIDE."""
    return f"{subject} is in bucket {bucket}"


class _Ends(dict[int, str]):
    """Ends of sentences by the threshold of a rollout; those up to 100 are prepared."""

    def __init__(self, form: str) -> None:
        super().__init__({threshold: form.format(threshold) for threshold in range(101)})
        self._form = form

    def __missing__(self, threshold: int) -> str:
        return self._form.format(threshold)


INSIDE = _Ends(", {} % rollout")
""""userId 42 is in bucket 8, 60 % rollout", after the subject."""
OUTSIDE = _Ends(" and the rollout stops at {} %")
""""userId 42 is in bucket 53 and the rollout stops at 50 %", after the subject."""


def no_identifier(stickiness: str) -> str:
    return f"The rollout is by {stickiness} and the context has none, so it is off"


def random_rollout(threshold: int) -> str:
    return f"Random on each call: about {threshold} % of calls are on"


def in_segment(name: str) -> str:
    return f"in segment {name_unseen(name)}"


def outside_segment(name: str, why: str) -> str:
    outside = f"not in segment {name_unseen(name)}"
    return f"{outside}: {why}" if why else outside


def missing_segment(segment: str) -> str:
    return f"segment {shorten_value(segment)} does not exist"


def bucket_detail(bucket: int, threshold: int) -> str:
    """ "bucket 92, rollout 10 %"."""
    return f"bucket {bucket}, rollout {threshold} %"


def custom_strategy(name: str) -> str:
    return f"Uses the custom strategy {shorten_value(name)}; only your SDK can evaluate it"


def host_strategy() -> str:
    return "Depends on the host name of the application; only your SDK can evaluate it"


def undecidable_pattern(field: str, fault: str | None) -> str:
    return f"The regular expression for {shorten_value(field)} {fault}; only your SDK can evaluate it"


def undecidable_text(field: str) -> str:
    return f"{shorten_value(field)} is too long for a regular expression here; only your SDK can evaluate it"


def switched_off(environment: str) -> str:
    return f"Switched off in {environment}"


def rejected(fault: str) -> str:
    """The reason of a flag that is off because SDKs cannot read it."""
    return f"SDKs cannot read this flag and keep it off: {fault}"


def parent_off(name: str, detail: str = "") -> str:
    return f"Depends on {name}, which is off here" + (f" ({detail})" if detail else "")


def parent_on(name: str) -> str:
    return f"Depends on {name} being off, and it is on here"


def parent_variant(name: str, variant: str, expected: Sequence[str]) -> str:
    return f"Depends on variant {list_values(expected)} of {name}, which has {variant} here"


def parent_met(name: str, enabled: bool) -> str:
    return f"Depends on {name}, which is {'on' if enabled else 'off'} here as needed"


def parent_missing(name: str) -> str:
    return f"Depends on {name}, which is not among these flags"


def parent_chained(name: str) -> str:
    return f"Depends on {name}, which depends on another flag; SDKs do not follow such chains"


def parent_unknown(name: str) -> str:
    return f"Depends on {name}; only your SDK can tell whether it is on"


def strategies_together(reasons: Sequence[str]) -> str:
    """The reasons of several strategies, none of which passes; at most SHOWN_STRATEGIES."""
    text = ""
    number = 1
    for reason in reasons[:SHOWN_STRATEGIES]:
        text += _STRATEGY_NUMBERS[number] + reason
        number += 1
    return f"{text} … ({len(reasons)} strategies in all)" if len(reasons) > SHOWN_STRATEGIES else text


_STRATEGY_NUMBERS = (
    "",
    "Strategy 1: ",
    *(f". Strategy {number}: " for number in range(2, SHOWN_STRATEGIES + 1)),
)


def variant_reason(name: str, *, subject: str | None, place: int, total: int) -> str:
    """Explains why a variant was chosen, by its place among the weights."""
    if subject is None:
        return f"Variant {name} by chance: the context has nothing to stick to"
    return f"{subject} is at {place} of {total}, which is variant {name}"


def variant_override(name: str, value: str) -> str:
    """`value` is a value_phrase."""
    return f"Variant {name} because {value}"


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


def suggest_value(operator: str, value: str) -> str | None:
    """The probable value in the SDKs' format: "0.5" for ".5", "2024-01-01T00:00:00.000Z" for "2024-01-01".

    None for a value that SDKs can read, and if there is no suggestion.
    """
    if (
        len(value) > MAX_LENGTH
        or OPERATORS[operator].family not in _SUGGESTED
        or not find_problem(operator, value)
    ):
        return None
    suggested = _SUGGESTED[OPERATORS[operator].family](value.strip())
    return suggested if suggested is not None and not find_problem(operator, suggested) else None


def _suggest_number(text: str) -> str | None:
    if _OTHER_BASE.fullmatch(text):
        return str(int(text, 0))
    return to_text(float(text)) if _DECIMAL.fullmatch(text) else None


def _suggest_date(text: str) -> str | None:
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


_SUGGESTED = {"number": _suggest_number, "date": _suggest_date}
