"""Reads and renders the constraint rows of a form. Each row has the input that its operator and field need.

The inputs of a row are named ``c-N-…``; hidden inputs ``c`` list the numbers. Values that the operator does
not read are kept while the form is being filled in, so that changing the operator loses nothing. They are not
saved. Long values stay on the server (``kept_values.py``): a row has ``c-N-kept`` in place of its values.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import QueryDict

from flagadmin.core.errors import ValidationError, clip
from flagadmin.core.http.json_bodies import parse_json
from playground.engine.definitions import ConstraintDefinition
from playground.engine.literals import objects_of, read_constraint_number, strings_of, to_text
from playground.engine.operators import OPERATORS, Operator
from projects.models import ContextField
from projects.strategies.kept_values import LOST, by_reference, is_long, reference

_BLANK = r"[ \t\u00a0]*"
_JSON_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_ITEM = re.compile(rf"{_BLANK}(?:({_JSON_STRING}){_BLANK}(?=[,\r\n]|\Z)|([^,\r\n]*))")


def read_values(text: str) -> list[str]:
    """The values of an entered list, in order. Strips surrounding spaces and ignores empty values."""
    values = []
    for match in _ITEM.finditer(text):
        quoted, plain = match.groups()
        if quoted is not None:
            values.append(_read_string(quoted))
        elif value := plain.rstrip(" \t\u00a0"):
            values.append(value)
    return values


def _read_string(quoted: str) -> str:
    """The text of a JSON string. If it cannot be stored (NUL or a lone surrogate), it counts as literal text."""
    try:
        return str(parse_json(quoted.encode()))
    except ValidationError:
        return quoted


def format_values(values: Iterable[str]) -> str:
    """One value per line, in a form that :func:`read_values` reads back unchanged."""
    return "\n".join(_format_value(value) for value in values)


def _format_value(value: str) -> str:
    return value if read_values(value) == [value] else json.dumps(value, ensure_ascii=False)


LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
ADD_CONDITION = "condition-field"  # the input that adds a condition on the context field named in it
_BUTTON = re.compile(r"(remove-constraint|show-values)-(\d{1,4})")
NEW = {"contextName": "", "operator": "IN", "values": [], "kept": False}
MAX_OFFERED = 200  # context fields offered by name; others can be typed
MAX_CHOICES = 24  # legal values shown as checkboxes or options
MAX_SHOWN = 3  # values of a long list


@dataclass(frozen=True, slots=True)
class ConstraintFields:
    """The context fields that a constraint may use, and the legal values of those that have some."""

    names: Sequence[str]
    legal: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, project_id: str) -> "ConstraintFields":
        rows = ContextField.objects.usable_in(project_id).order_by("sort_order", "name")
        fields = list(rows.values_list("name", "legal_values"))
        legal = {name: [item["value"] for item in values] for name, values in fields if values}
        return cls([name for name, _ in fields], legal)


@dataclass(frozen=True, slots=True)
class ConstraintRow:
    """A row of the form. ``kind`` is the input: list, checks, select, number, time, text or kept.

    ``options`` are (value, selected) pairs. ``was`` has the displayed values as JSON, so that an input that was
    not edited returns exactly these. A row of kind "kept" shows the values ``first`` and the number ``more``;
    ``kept`` is the reference to all of them.
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
    help: str
    kept: str
    first: Sequence[str]
    more: int
    is_list: bool
    inverted: bool
    may_invert: bool
    case_insensitive: bool
    may_fold: bool
    errors: Sequence[str]


def list_operator_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """Operators and their labels, by type of value: ("Version", [("SEMVER_GT", "Version: >"), …])."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, operator in OPERATORS.items():
        groups.setdefault(operator.family.group, []).append((name, operator.label))
    return list(groups.items())


def read_constraints(form: QueryDict, stored: Any) -> list[dict[str, Any]]:
    """The constraints of a submitted form, in order, each with both ``values`` and ``value``.

    ``stored`` are the constraints whose values rows may refer to. The field named in ``ADD_CONDITION`` gets a new one.
    """
    lists = (_select_values(constraint) for constraint in objects_of(stored))
    kept = by_reference(values for values in lists if is_long(values))
    rows = [_read_row(form, f"c-{number}-", kept) for number in form.getlist("c")]
    added = form.get(ADD_CONDITION, "").strip()
    return [*rows, {**NEW, "contextName": added}] if added else rows


def _read_row(form: QueryDict, prefix: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    if referred := form.get(f"{prefix}kept"):
        values = kept.get(referred)
        own = {"values": values or [], "value": "", "kept": values is not None, "lost": values is None}
        return _read_inputs(form, prefix) | own
    return _read_inputs(form, prefix)


def _read_inputs(form: QueryDict, prefix: str) -> dict[str, Any]:
    shown = _read_shown(form.get(f"{prefix}was", ""))
    position = {value: index for index, value in enumerate(shown)}
    ticked = sorted(form.getlist(f"{prefix}choice"), key=lambda value: position.get(value, len(position)))
    return {
        "contextName": form.get(f"{prefix}field", "").strip(),
        "operator": form.get(f"{prefix}operator", ""),
        "values": [*ticked, *read_values(form.get(f"{prefix}values", ""))],
        "value": _read_value(form.get(f"{prefix}value", ""), shown[0] if shown else ""),
        "inverted": f"{prefix}inverted" in form,
        "caseInsensitive": f"{prefix}case" in form,
        "kept": False,
    }


def change_rows(rows: list[Any], do: str, stored: Any) -> None:
    """Carries out a button of the rows: removes one, or puts one's long values into the form."""
    if (button := _BUTTON.fullmatch(do)) and int(button[2]) < len(rows):
        if button[1] == "remove-constraint":
            del rows[int(button[2])]
        else:
            _show_values(rows, int(button[2]), stored)


def _show_values(rows: list[Any], index: int, stored: Any) -> None:
    """Puts the values of one row into the form. Shortens unchanged values of other rows again."""
    known = [_select_values(constraint) for constraint in objects_of(stored)]
    for other, row in enumerate(rows):
        row["kept"] = (
            other != index and (row["kept"] or _select_values(row) in known) and is_long(_select_values(row))
        )


def _select_values(constraint: Mapping[str, Any]) -> list[str]:
    """The values that the operator reads; for the other kind of operator, their converted form."""
    values, value = strings_of(constraint.get("values")), to_text(constraint.get("value"))
    operator = OPERATORS.get(to_text(constraint.get("operator")), OPERATORS["IN"])
    if operator.takes_list:
        return values or ([value] if value else [])
    return [value or (values[0] if values else "")]


def _read_shown(text: str) -> list[str]:
    try:
        return strings_of(parse_json(text.encode()))
    except ValidationError:
        return []


def _read_value(text: str, shown: str) -> str:
    """The entered value, stripped, with times in UTC; ``shown`` if the input was not edited."""
    if text == re.sub(r"[\r\n]", "", shown):  # browsers remove line breaks from input values
        return shown
    text = text.strip()
    if not LOCAL_TIME.fullmatch(text):
        return text
    seconds = text if text.count(":") == 2 else f"{text}:00"
    return shown if format_local_time(shown) == seconds else f"{seconds}.000Z"


def clean_constraints(rows: Iterable[Mapping[str, Any]]) -> list[ConstraintDefinition]:
    """The constraints to save, with only the members that their operators read."""
    return [_clean_constraint(row) for row in rows]


def _clean_constraint(row: Mapping[str, Any]) -> ConstraintDefinition:
    name, operator = row["operator"], OPERATORS.get(row["operator"])
    family = operator.family if operator else None
    document: ConstraintDefinition = {
        "contextName": row["contextName"],
        "operator": name,
        "values": [],
        "inverted": bool(row.get("inverted")) and (family is None or family.may_invert),
        "caseInsensitive": bool(row.get("caseInsensitive")) and family is not None and family.may_ignore_case,
    }
    values, value = row.get("values") or [], row.get("value")
    if operator is None or operator.takes_list:
        return document | {"values": values or ([value] if value else [])}
    return document | {"value": value or (values[0] if values else "")}


def make_constraint_rows(
    documents: Any, available: ConstraintFields, errors: Mapping[int, Sequence[str]] | None = None
) -> list[ConstraintRow]:
    """Rows for the template. ``errors`` are keyed by row index."""
    return [
        _make_row(number, document, available, (errors or {}).get(number, ()))
        for number, document in enumerate(objects_of(documents))
    ]


def _make_row(
    number: int, document: Mapping[str, Any], available: ConstraintFields, errors: Sequence[str]
) -> ConstraintRow:
    field, name = to_text(document.get("contextName")), to_text(document.get("operator"))
    operator = OPERATORS.get(name, OPERATORS["IN"])
    selected = _select_values(document)
    value = "" if operator.takes_list else selected[0]
    legal = [] if operator.family.is_partial else available.legal.get(field, [])
    options = list(dict.fromkeys([*legal, *filter(None, selected)])) if legal else []
    if kept := is_long(selected) and document.get("kept", True):
        kind = "kept"
    else:
        kind = _choose_kind(operator, value, _can_choose(options))
    return ConstraintRow(
        number=number,
        field=field,
        operator=name,
        kind=kind,
        values=format_values(selected) if kind == "list" else "",
        value=(format_local_time(value) or "") if kind == "time" else value,
        was="" if kept or (kind == "list" and is_long(selected)) else json.dumps(selected),
        options=[(text, text in selected) for text in options] if kind in ("checks", "select") else [],
        hint=operator.family.hint,
        help=operator.help if name in OPERATORS else "",
        kept=reference(selected) if kept else "",
        first=[clip(text, 40) for text in selected[:MAX_SHOWN]] if kept else [],
        more=max(len(selected) - MAX_SHOWN, 0),
        is_list=len(selected) > settings.SEGMENT_VALUES_LIMIT,
        inverted=bool(document.get("inverted")),
        may_invert=operator.family.may_invert,
        case_insensitive=bool(document.get("caseInsensitive")),
        may_fold=operator.family.may_ignore_case,
        errors=[LOST, *errors] if document.get("lost") else errors,
    )


def _can_choose(options: Sequence[str]) -> bool:
    return 0 < len(options) <= MAX_CHOICES and not is_long(options)


def _choose_kind(operator: Operator, value: str, may_choose: bool) -> str:
    if operator.takes_list:
        return "checks" if may_choose else "list"
    if may_choose:
        return "select"
    kind = operator.family.input
    if kind == "number" and value and read_constraint_number(value) is None:
        return "text"
    return "text" if kind == "time" and value and not format_local_time(value) else kind


def format_local_time(text: str) -> str | None:
    """A stored time in the format of a datetime-local input (UTC, whole seconds); None if not possible."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None or moment.microsecond:
            return None
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError):
        return None
