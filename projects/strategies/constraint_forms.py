"""Reads and renders the constraint rows of a form. Each row has the input that its operator and field need.

The inputs of a row are named ``c-N-…``; hidden inputs ``c`` list the numbers. Values that the operator does
not read are kept while the form is being filled in, so that changing the operator loses nothing. They are not
saved.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import QueryDict

from playground.engine.coercion import objects_of, strings_of, text_of
from playground.engine.literals import constraint_number
from playground.engine.operators import OPERATORS
from projects.models import ContextField
from projects.strategies.constraint_rules import PARTIAL
from projects.strategies.known_names import usable
from projects.strategies.value_list import read_values, values_text

Document = dict[str, Any]
LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
NEW = {"contextName": "", "operator": "IN", "values": []}


@dataclass(frozen=True, slots=True)
class ConstraintFields:
    """The context fields that a constraint may use, and the legal values of those that have some."""

    names: Sequence[str]
    legal: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, project_id: str) -> "ConstraintFields":
        rows = usable(ContextField.objects.all(), project_id).order_by("sort_order", "name")
        fields = list(rows.values_list("name", "legal_values"))
        legal = {name: [item["value"] for item in values] for name, values in fields if values}
        return cls([name for name, _ in fields], legal)


@dataclass(frozen=True, slots=True)
class ConstraintRow:
    """A row of the form. ``kind`` is the input: list, checks, select, number, time or text.

    ``options`` are (value, selected) pairs. ``was`` has the displayed values as JSON, so that an input that was
    not edited returns exactly these.
    """

    number: int
    field: str
    operator: str
    kind: str
    values: str
    value: str
    was: str
    options: Sequence[tuple[str, bool]]
    hint: str
    inverted: bool
    may_invert: bool
    case_insensitive: bool
    may_fold: bool
    errors: Sequence[str]


def operator_choices() -> list[tuple[str, str]]:
    """Operators and their labels: ("SEMVER_GT", "is a version above")."""
    return [
        (name, " ".join(filter(None, ("is", operator.noun, operator.relation))))
        for name, operator in OPERATORS.items()
    ]


def given_constraints(given: QueryDict) -> list[Document]:
    """The constraints of a submitted form, in order, each with both ``values`` and ``value``."""
    return [_given(given, f"c-{number}-") for number in given.getlist("c")]


def _given(given: QueryDict, prefix: str) -> Document:
    shown = _shown(given.get(f"{prefix}was", ""))
    place = {value: index for index, value in enumerate(shown)}
    ticked = sorted(given.getlist(f"{prefix}choice"), key=lambda value: place.get(value, len(place)))
    return {
        "contextName": given.get(f"{prefix}field", "").strip(),
        "operator": given.get(f"{prefix}operator", ""),
        "values": [*ticked, *read_values(given.get(f"{prefix}values", ""))],
        "value": _value(given.get(f"{prefix}value", ""), shown[0] if shown else ""),
        "inverted": f"{prefix}inverted" in given,
        "caseInsensitive": f"{prefix}case" in given,
    }


def _shown(text: str) -> list[str]:
    try:
        return strings_of(json.loads(text))
    except (ValueError, RecursionError):
        return []


def _value(text: str, shown: str) -> str:
    """The entered value, stripped, with times in UTC; ``shown`` if the input was not edited."""
    if text == re.sub(r"[\r\n]", "", shown):  # browsers remove line breaks from input values
        return shown
    text = text.strip()
    if not LOCAL_TIME.fullmatch(text):
        return text
    seconds = text if text.count(":") == 2 else f"{text}:00"
    return shown if local_time(shown) == seconds else f"{seconds}.000Z"


def stored_constraints(rows: Iterable[Document]) -> list[Document]:
    """The constraints to save: only the members that their operators read."""
    return [_stored(row) for row in rows]


def _stored(row: Document) -> Document:
    name, operator = row["operator"], OPERATORS.get(row["operator"])
    folds = operator is not None and _folds(operator.family)
    document = {
        "contextName": row["contextName"],
        "operator": name,
        "values": [],
        "inverted": bool(row.get("inverted")) and name != "REGEX",
        "caseInsensitive": bool(row.get("caseInsensitive")) and folds,
    }
    values, value = row.get("values") or [], row.get("value")
    if operator is None or operator.takes == "values":
        return document | {"values": values or ([value] if value else [])}
    return document | {"value": value or (values[0] if values else "")}


def _folds(family: str) -> bool:
    return family in ("text", "regex")


def constraint_rows(
    documents: Any, available: ConstraintFields, errors: Mapping[int, Sequence[str]] | None = None
) -> list[ConstraintRow]:
    """Rows for the template. ``errors`` are keyed by row index."""
    return [
        _row(number, document, available, (errors or {}).get(number, ()))
        for number, document in enumerate(objects_of(documents))
    ]


def _row(
    number: int, document: Mapping[str, Any], available: ConstraintFields, errors: Sequence[str]
) -> ConstraintRow:
    field, name = text_of(document.get("contextName")), text_of(document.get("operator"))
    operator = OPERATORS.get(name, OPERATORS["IN"])
    values, value = strings_of(document.get("values")), text_of(document.get("value"))
    if operator.takes == "values":
        values = values or ([value] if value else [])
    else:
        value = value or (values[0] if values else "")
    legal = [] if operator.family in PARTIAL else available.legal.get(field, [])
    kind = _kind(operator.takes, operator.family, value, bool(legal))
    selected = values if operator.takes == "values" else [value]
    return ConstraintRow(
        number=number,
        field=field,
        operator=name,
        kind=kind,
        values=values_text(values),
        value=(local_time(value) or "") if kind == "time" else value,
        was=json.dumps(selected),
        options=[(text, text in selected) for text in dict.fromkeys([*legal, *filter(None, selected)])],
        hint=HINTS.get(operator.family, ""),
        inverted=bool(document.get("inverted")),
        may_invert=name != "REGEX",
        case_insensitive=bool(document.get("caseInsensitive")),
        may_fold=_folds(operator.family),
        errors=errors,
    )


HINTS = {
    "version": "1.2.3",
    "regex": "RE2, for example ^[a-z]+@",
    "network": "10.0.0.0/8, 2001:db8::/32",
    "date": "2026-11-21T09:00:00.000Z",
}


def _kind(takes: str, family: str, value: str, has_legal: bool) -> str:
    if takes == "values":
        return "checks" if has_legal else "list"
    if has_legal:
        return "select"
    if family == "number" and (not value or constraint_number(value) is not None):
        return "number"
    if family == "date" and (not value or local_time(value)):
        return "time"
    return "text"


def local_time(text: str) -> str | None:
    """A stored time in the format of a datetime-local input (UTC, whole seconds); None if not possible."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.microsecond:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
