"""Compiles constraints: each becomes a test of one context field.

A constraint that Yggdrasil's rule language cannot express switches the *whole flag* off. It gets a `fault` and never
holds, not even if it is inverted. docs/decisions/evaluation.md lists the cases.

Lets equal values of a compilation share their memory: most names, weights and texts of a flag recur in
others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from sys import getsizeof, intern
from typing import Any, Final, TypeVar

import orjson

from playground.engine import literals, operators
from playground.engine.context import Columns
from playground.engine.literals import objects_of, string_of, strings_of, to_text
from playground.engine.operators import OPERATORS, PATTERN, VERSION, Operator, Test
from playground.engine.sentences import met_phrase, quote_value, suggestion, undecidable_pattern, unmet_phrase

T = TypeVar("T", bound=Hashable)


class Shared:
    """Keeps the first of equal values. Called with a value, it returns the kept one.

    `nbytes` is the memory of the kept values. The members of a tuple count only if they are shared themselves.
    """

    __slots__ = ("_known", "nbytes")

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self.nbytes = 0

    def __call__(self, value: T) -> T:
        known: T | None = self._known.get(value)
        if known is None:
            known = self._known[value] = value
            self.nbytes += getsizeof(value)
        return known


WHITESPACE: Final = " \t"

# Memory of a compiled constraint, in bytes: itself with its phrases, and per byte and comma of its JSON. Measured.
CONSTRAINT, BYTE, VALUE = 600, 3, 70


@dataclass(frozen=True, slots=True)
class CompiledConstraint:
    """A compiled constraint. Its result is `test(values[column]) is not inverted`.

    `unmet` and `met` are the ends of its sentences (", needs one of US, DE", " (above 4.2.0)"). If only an SDK can
    tell whether it holds, the value of its column is UNDECIDABLE and it counts as holding; `undecidable` is the
    reason if this applies to every context.
    """

    field: str
    operator: str
    column: int
    test: Test
    inverted: bool
    unmet: str
    met: str
    fault: str | None = None
    undecidable: str = ""

    @property
    def need(self) -> str:
        """ "needs one of US, DE"."""
        return self.unmet.removeprefix(", ")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Constraints that must all hold. Strategies with equal constraints share one object.

    The result is a number with a bit for each constraint that holds, the lowest for the first; in `all_hold` all bits
    are set. Sentences consist of a phrase for the value of each of the `fields` and of ends: `met` for all together,
    with a `%s` for each value, and `unmet` for each constraint. `matched` are the columns that regular expressions
    match.
    """

    constraints: tuple[CompiledConstraint, ...]
    all_hold: int
    fields: tuple[str, ...]
    met: str
    unmet: tuple[str, ...]
    matched: frozenset[int]


class Constraints:
    """Compiles constraints, equal ones to one object.

    Reuses the columns of an earlier compilation. All other compiled values may be shared through `shared`.
    """

    def __init__(self, columns: Columns | None = None, shared: Shared | None = None) -> None:
        self.columns = Columns(columns)
        self.shared = shared or Shared()
        self._known: dict[bytes, CompiledConstraint] = {}
        self._together: dict[tuple[int, ...], Conditions] = {}
        self._fields: dict[tuple[str, ...], tuple[str, ...]] = {}

    def compile(self, document: Mapping[str, Any]) -> CompiledConstraint:
        """Compiles one stored constraint. Never raises."""
        try:
            key = orjson.dumps(document)
        except TypeError:
            return compile_constraint(document, self.columns)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = compile_constraint(document, self.columns)
            self.shared.nbytes += CONSTRAINT + BYTE * len(key) + VALUE * key.count(b",")
        return known

    def compile_all(self, documents: object) -> list[CompiledConstraint]:
        """Compiles a stored list of constraints."""
        return [self.compile(document) for document in objects_of(documents)]

    def together(self, constraints: list[CompiledConstraint]) -> Conditions:
        """The conditions with these constraints."""
        key = tuple(id(constraint) for constraint in constraints)
        known = self._together.get(key)
        if known is None:
            fields = tuple(constraint.field for constraint in constraints)
            known = self._together[key] = Conditions(
                constraints=tuple(constraints),
                all_hold=(1 << len(constraints)) - 1,
                fields=self._fields.setdefault(fields, fields),
                met="; ".join("%s" + constraint.met.replace("%", "%%") for constraint in constraints),
                unmet=tuple(constraint.unmet for constraint in constraints),
                matched=frozenset(c.column for c in constraints if c.operator == "REGEX"),
            )
        return known


def compile_constraint(document: Mapping[str, Any], columns: Columns) -> CompiledConstraint:
    """Compiles one stored constraint. Never raises."""
    field = string_of(document.get("contextName"))
    operator = string_of(document.get("operator")) or ""
    if field is None or operator not in OPERATORS:
        return _compile_broken(field or "", operator, _describe_unknown(field, operator), columns)
    if unquotable(field):
        return _compile_broken(
            field, operator, f"the field name {quote_value(field)} cannot be read by SDKs", columns
        )
    inverted = bool(document.get("inverted"))
    form, test, fault, values = _bind(operator, document)
    hint = suggestion(operators.suggest_value(operator, to_text(document.get("value"))))
    if fault is not None:
        return _compile_broken(field, operator, f"{operator} on {field} {fault}{hint}", columns)
    return CompiledConstraint(
        field=intern(field),
        operator=intern(operator),
        column=columns.position(form, field),
        test=test,
        inverted=test is not operators.never and inverted is not (operator == "NOT_IN"),
        unmet=unmet_phrase(operator, values, inverted=inverted) + hint,
        met=met_phrase(operator, values, inverted=inverted) + hint,
        undecidable=undecidable_pattern(field, operators.find_fault(values[0]))
        if form == "undecidable"
        else "",
    )


def _describe_unknown(field: str | None, operator: str) -> str:
    return (
        "a constraint has no field" if field is None else f"the operator {quote_value(operator)} is unknown"
    )


def _compile_broken(field: str, operator: str, fault: str, columns: Columns) -> CompiledConstraint:
    column = columns.position("never", "")
    return CompiledConstraint(
        field, operator, column, operators.never, False, f", can never hold: {fault}", "", fault
    )


Bound = tuple[str, Test, str | None, list[str]]
"""The form of the column, the test, the fault, and the values shown in sentences."""


def _bind(operator: str, document: Mapping[str, Any]) -> Bound:
    values = strings_of(document.get("values"))
    value = to_text(document.get("value"))
    fold = bool(document.get("caseInsensitive"))
    described = OPERATORS[operator]
    if described.takes_list:
        return bind_list(described, values, fold=fold and described.family.may_ignore_case)
    if described.family is PATTERN:
        return _bind_regex(value, fold, inverted=bool(document.get("inverted")))
    return _bind_ordering(described, value)


def bind_list(operator: Operator, values: list[str], *, fold: bool = False) -> Bound:
    """IN compares exactly: SDKs ignore `caseInsensitive` there. NOT_IN is an inverted IN."""
    expected = tuple(value.lower() for value in values) if fold else tuple(values)
    fault = _list_fault(values, required=not operator.family.may_be_empty)
    return "folded" if fold else operator.family.form, operator.compare(expected), fault, values


def _bind_regex(pattern: str, fold: bool, *, inverted: bool) -> Bound:
    if pattern.endswith("\\"):
        return "text", operators.never, "ends in a backslash", [pattern]
    fault = operators.find_fault(pattern, case_insensitive=fold)
    if fault == operators.INVALID:
        return "text", _nothing, None, [pattern]
    form = (
        "undecidable" if fault else f"matched {operators.find_longest_text(pattern, case_insensitive=fold)}"
    )
    return form, operators.make_pattern_test(pattern, fold=fold, inverted=inverted), None, [pattern]


def _nothing(value: object) -> bool:
    """An invalid pattern matches nothing, so an inverted one holds (specification 21)."""
    return False


def _bind_ordering(operator: Operator, value: str) -> Bound:
    """The type of the value decides the comparison: SEMVER_GT with "5" compares numbers, as in SDKs."""
    text = value.strip(WHITESPACE)
    if operator.family is VERSION and value.startswith("v"):
        return "version", operators.never, None, [text]
    if (instant := literals.read_constraint_instant(text)) is not None:
        return "instant", operator.compare(instant), None, [text]
    if (version := literals.read_version(text)) is not None:
        return "version", operator.compare(version), None, [text]
    if (number := literals.read_constraint_number(text)) is not None:
        return "number", operator.compare(number), None, [text]
    return "text", operators.never, f"cannot use {quote_value(value)}", [value]


def _list_fault(values: list[str], *, required: bool) -> str | None:
    if required and not values:
        return "has no values"
    if any(value.endswith("\\") for value in values):
        return "has a value that ends in a backslash"
    return None


def unquotable(text: str) -> bool:
    """Whether a name contains a quote or ends in a backslash: SDKs' rule language cannot quote it."""
    return '"' in text or text.endswith("\\")
