"""The evaluation context, and its fields in the types that constraints compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from playground.engine import literals, operators
from playground.engine.literals import mapping_of, string_of, to_text
from playground.engine.operators import UNDECIDABLE

TOP_LEVEL = ("userId", "sessionId", "remoteAddress", "environment", "appName", "currentTime")
"""Fields that every SDK knows by name; everything else in a context is a property."""

DEFAULTS = {"appName": "playground", "environment": "default"}
"""The values of SDKs if the application does not set them."""

NOTHING: Mapping[str, str] = {}

PointInTime = datetime | int | float
"""A point in time: an aware datetime or milliseconds since 1970 in UTC."""


class Context:
    """The context of a request. `values` maps each given field to its string.

    As in SDKs: a top-level value takes precedence over a property of the same name, other top-level keys count as
    properties, numbers and booleans become strings as in JavaScript, null means absent, and an empty string is a value.
    """

    __slots__ = ("fields", "values")

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        document = mapping_of(document)
        texts = _read_texts(mapping_of(document.get("properties")))
        texts |= _read_texts({key: value for key, value in document.items() if key != "properties"})
        if texts.get("currentTime") == "":
            del texts["currentTime"]
        self.fields = texts
        self.values = texts | {
            field: default for field, default in DEFAULTS.items() if document.get(field) is None
        }

    @classmethod
    def of_texts(cls, texts: dict[str, str], *, now: str) -> Context:
        """The context with these strings by field, which need no conversion, and with `now` as currentTime if it has
        none.
        """
        context = cls.__new__(cls)
        context.fields, context.values = texts, {**DEFAULTS, "currentTime": now, **texts}
        return context

    @classmethod
    def of_strings(cls, document: Mapping[str, Any], *, now: str) -> Context:
        """The same as ``Context(document).at(now)``, for a document whose values, and those of its properties, are all
        strings: a comparison has ten thousand.
        """
        context = cls.__new__(cls)
        texts = {field: text for field, text in document.items() if field != "properties"}
        texts = {**document.get("properties", NOTHING), **texts}
        if texts.get("currentTime") == "":
            del texts["currentTime"]
        context.fields = texts
        defaults = {field: default for field, default in DEFAULTS.items() if field not in document}
        context.values = {"currentTime": now, **texts, **defaults}
        return context

    def at(self, now: PointInTime) -> Context:
        """This context, with `now` as currentTime if it has none."""
        if "currentTime" in self.values:
            return self
        timed = Context.__new__(Context)
        timed.fields, timed.values = (
            self.fields,
            {
                **self.values,
                "currentTime": now if isinstance(now, str) else format_time(now),
            },
        )
        return timed

    def lookup(self, field: str) -> str | None:
        """The value of a field; None if it is absent."""
        return self.values.get(field)


def _read_texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {to_text(key): text for key, value in values.items() if (text := string_of(value)) is not None}


def format_time(now: PointInTime) -> str:
    """A point in time as an RFC 3339 string, in UTC with milliseconds."""
    if not isinstance(now, datetime):
        now = datetime.fromtimestamp(now / 1000, UTC)
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Values = Sequence[Any] | Mapping[int, Any]
"""The value of each column, by position."""


class Columns:
    """The distinct (form, field) pairs that the constraints of a snapshot compare.

    Each is computed once per evaluation, so a thousand constraints on the same version parse it once. `identifier`
    columns hold the UTF-8 bytes to hash.
    """

    def __init__(self, known: Columns | None = None) -> None:
        """Columns that are ``known`` keep their positions; new ones follow them."""
        self._positions: dict[tuple[str, str], int] = {} if known is None else dict(known._positions)

    def position(self, form: str, field: str) -> int:
        return self._positions.setdefault((form, field), len(self._positions))

    def __len__(self) -> int:
        return len(self._positions)

    def pairs(self) -> list[tuple[str, str]]:
        """The form and the field of every column, by position."""
        return list(self._positions)

    def fields(self) -> list[str]:
        """The field of every column, by position."""
        return [field for _, field in self._positions]

    def values(self, context: Context) -> list[Any]:
        """The value of every column for a context, by position."""
        return [FORMS[form](context, field) for form, field in self._positions]

    def values_on_demand(self, context: Context) -> Values:
        """The value of each column for a context, computed on first use: for a few flags of many."""
        return _OnDemand(self._listed, context)

    @cached_property
    def _listed(self) -> list[tuple[str, str]]:
        return list(self._positions)


class _OnDemand(dict[int, Any]):
    def __init__(self, columns: list[tuple[str, str]], context: Context) -> None:
        super().__init__()
        self._columns, self._context = columns, context

    def __missing__(self, position: int) -> Any:
        form, field = self._columns[position]
        value = self[position] = FORMS[form](self._context, field)
        return value


def _fold_case(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _encode_up_to(longest: int) -> Callable[[str | None], Any]:
    """The UTF-8 bytes for a regular expression, up to a number of characters."""

    def encode(text: str | None) -> Any:
        if text is None:
            return None
        return text.encode() if len(text) <= longest else UNDECIDABLE

    return encode


PARSERS: dict[str, Callable[[str | None], Any]] = {
    "text": lambda text: text,
    "folded": _fold_case,
    "number": literals.read_number,
    "version": literals.read_version,
    "instant": literals.read_instant,
    "address": literals.read_address,
    **{f"matched {longest}": _encode_up_to(longest) for longest in operators.TEXT_LENGTHS},
    "identifier": _encode,
    "undecidable": lambda text: UNDECIDABLE,
    "never": lambda text: None,
}
"""Parses the string of a field into each form."""


def find_sticky_field(context: Context, stickiness: str) -> str | None:
    """The field whose value a stickiness hashes; None if the context does not have it.

    `default` takes userId, then sessionId; every other name is a field of the context.
    """
    fields = ("userId", "sessionId") if stickiness == "default" else (stickiness,)
    return next((field for field in fields if field in context.values), None)


def find_sticky_text(context: Context, stickiness: str) -> str | None:
    """The value that a stickiness hashes."""
    field = find_sticky_field(context, stickiness)
    return None if field is None else context.values[field]


def _make_form(parse: Callable[[str | None], Any]) -> Callable[[Context, str], Any]:
    return lambda context, field: parse(context.values.get(field))


FORMS: dict[str, Callable[[Context, str], Any]] = {
    **{form: _make_form(parse) for form, parse in PARSERS.items()},
    "text": lambda context, field: context.values.get(field),
    "identifier": lambda context, stickiness: _encode(find_sticky_text(context, stickiness)),
}
