"""Suggests replacements for numbers and dates that SDKs cannot read.

The reference accepts whatever JavaScript reads, so its exports contain such values; in SDKs they never match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from playground.engine.coercion import text_of
from playground.engine.literals import MAX_LENGTH
from playground.engine.operators import OPERATORS, problem

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_OTHER_BASE = re.compile(r"0(?:[xX][0-9a-fA-F]{1,13}|[oO][0-7]{1,17}|[bB][01]{1,52})", re.ASCII)
_EPOCH = re.compile(r"[0-9]{10}(?:[0-9]{3})?", re.ASCII)
_FORMATS = (
    "%a %b %d %Y %H:%M:%S GMT%z",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%Y-%m",
    "%Y",
)


def suggested_value(operator: str, value: str) -> str | None:
    """The value that was probably meant, as SDKs read it: "0.5" for ".5", "2024-01-01T00:00:00.000Z" for "2024-01-01".

    None for a value that SDKs can read, and if there is nothing to suggest.
    """
    if (
        len(value) > MAX_LENGTH
        or OPERATORS[operator].family not in _SUGGESTED
        or not problem(operator, value)
    ):
        return None
    found = _SUGGESTED[OPERATORS[operator].family](value.strip())
    return found if found is not None and not problem(operator, found) else None


def _number(text: str) -> str | None:
    if _OTHER_BASE.fullmatch(text):
        return str(int(text, 0))
    return text_of(float(text)) if _DECIMAL.fullmatch(text) else None


def _date(text: str) -> str | None:
    """Without a zone a time is in UTC. Ten digits are seconds since 1970, thirteen are milliseconds."""
    try:
        moment = next(_moments(text), None)
        if moment is None:
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return None


def _moments(text: str) -> Iterator[datetime]:
    if _EPOCH.fullmatch(text):
        yield datetime.fromtimestamp(int(text[:10]) + int(text[10:] or "0") / 1000, UTC)
    text = text.partition(" (")[0]  # JavaScript appends the name of the zone
    with suppress(ValueError):
        yield datetime.fromisoformat(text)
    for form in _FORMATS:
        with suppress(ValueError):
            yield datetime.strptime(text, form)  # noqa: DTZ007 - one without a zone is in UTC, see above
    with suppress(ValueError):
        yield parsedate_to_datetime(text)


_SUGGESTED = {"number": _number, "date": _date}
