"""Conditions and results written in JSONLogic, with flagd's operators."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from importer.converting.conditions import (
    ALWAYS,
    MAX_DEPTH,
    NEVER,
    All,
    Condition,
    Not,
    Test,
    Unsupported,
    compare_equal,
    compare_number,
    compare_time,
    compare_versions,
    has_value,
    is_number,
    match_any,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text

MISSING = object()
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
SENTENCE = "The operator {} of its targeting has no equivalent."


@dataclass(slots=True)
class Logic:
    """Reads the conditions of one flag.

    ``constants`` are the variables with a known value, ``clock`` is the variable with the time in seconds, and
    ``refs`` are shared conditions. ``field_of`` is the context field of a variable.
    """

    field_of: Callable[[str], str]
    constants: Mapping[str, Any] = field(default_factory=dict)
    clock: str = ""
    refs: Mapping[str, Any] = field(default_factory=dict)
    truths: set[str] = field(default_factory=set)
    """The fields for which only the text ``true`` counts as true."""
    _depth: int = 0

    def read_condition(self, rule: Any) -> Condition:
        """Reads the condition under which a rule is true. Raises Unsupported."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Unsupported(f"Its targeting is nested deeper than {MAX_DEPTH} levels.")
            return self._read_condition(rule)
        finally:
            self._depth -= 1

    def _read_condition(self, rule: Any) -> Condition:
        if not isinstance(rule, Mapping):
            return ALWAYS if rule else NEVER
        operator, arguments = split_operation(rule)
        if operator == "$ref":
            return self.read_condition(self.ref(arguments))
        if operator == "var":
            return self._read_constant(arguments)
        read = _READERS.get(operator)
        if read is None:
            raise Unsupported(SENTENCE.format(operator))
        return read(self, operator, arguments)

    def ref(self, arguments: Sequence[Any]) -> Any:
        name = arguments[0] if arguments else None
        if not isinstance(name, str) or name not in self.refs:
            raise Unsupported(
                f"Its targeting refers to {name}, which is not among the evaluators of the file."
            )
        return self.refs[name]

    def _read_constant(self, arguments: Sequence[Any]) -> Condition:
        value, name = self._read_operand({"var": list(arguments)})
        if name is None:
            return ALWAYS if value else NEVER
        self.truths.add(name)
        return match_any(name, ["true"])

    def _read_operand(self, value: Any) -> tuple[Any, str | None]:
        """A constant, or the context field of a variable."""
        if isinstance(value, Mapping):
            operator, arguments = split_operation(value)
            if operator == "$ref":
                return self._read_operand(self.ref(arguments))
            if operator != "var":
                raise Unsupported(SENTENCE.format(operator))
            variable = arguments[0] if arguments else None
            if not isinstance(variable, str) or not variable or len(arguments) > 1:
                raise Unsupported("Its targeting has a variable with a default, or without a name.")
            if variable in self.constants:
                return self.constants[variable], None
            return MISSING, self.field_of(variable)
        return value, None

    def _read_pair(self, arguments: Sequence[Any]) -> tuple[str | None, Any, bool]:
        """Field, constant, and whether the constant comes first. Without a field, both operands are constants."""
        if len(arguments) != 2:
            raise Unsupported("A comparison of its targeting does not have two operands.")
        (left, left_field), (right, right_field) = map(self._read_operand, arguments)
        if left_field is not None and right_field is not None:
            raise Unsupported(
                f"It compares {left_field} with {right_field}: constraints compare with values."
            )
        if left_field is None:
            return right_field, left if right_field is not None else (left, right), True
        return left_field, right, False

    # Operators -----------------------------------------------------------------------------------------------

    def _read_all(self, operator: str, arguments: Sequence[Any]) -> Condition:
        parts = tuple(map(self.read_condition, arguments))
        return All(parts) if operator == "and" else AnyOf(parts)

    def _read_not(self, operator: str, arguments: Sequence[Any]) -> Condition:
        part = self.read_condition(arguments[0] if arguments else None)
        return Not(part) if operator == "!" else part

    def _read_equal(self, operator: str, arguments: Sequence[Any]) -> Condition:
        name, value, _ = self._read_pair(arguments)
        if name is None:
            equal: Condition = ALWAYS if value[0] == value[1] else NEVER
        else:
            equal = Not(has_value(name)) if value is None else compare_equal(name, value)
        return Not(equal) if operator.startswith("!") else equal

    def _read_order(self, operator: str, arguments: Sequence[Any]) -> Condition:
        if len(arguments) == 3:
            return All((self._read_order(operator, arguments[:2]), self._read_order(operator, arguments[1:])))
        name, value, constant_first = self._read_pair(arguments)
        if name is None or not is_number(value):
            raise Unsupported(f"It compares with {operator} what is not a number.")
        operator = FLIPPED[operator] if constant_first else operator
        if name == self.clock:
            return compare_time(operator, value)
        # JSONLogic treats an absent variable as 0.
        return compare_number(name, operator, value, if_absent=_ORDERS[operator](0, value))

    def _read_in(self, operator: str, arguments: Sequence[Any]) -> Condition:
        name, value, constant_first = self._read_pair(arguments)
        if name is None:
            raise Unsupported("It looks for a constant in a constant.")
        if constant_first and isinstance(value, str):
            return Test(name, "STR_CONTAINS", (value,))
        if constant_first or not isinstance(value, list):
            raise Unsupported(f"It looks for {name} in a text, or for a value in a list that is {name}.")
        if any(isinstance(item, list | dict) or item is None for item in value):
            raise Unsupported(f"It looks for {name} in a list of lists, objects or nothing.")
        return match_any(name, map(format_text, value))

    def _read_text(self, operator: str, arguments: Sequence[Any]) -> Condition:
        name, value, constant_first = self._read_pair(arguments)
        if name is None or constant_first or not isinstance(value, str):
            raise Unsupported(f"Its {operator} does not compare a variable with a text.")
        kind = "STR_STARTS_WITH" if operator == "starts_with" else "STR_ENDS_WITH"
        return Test(name, kind, (value,)) if value else has_value(name)

    def _read_version(self, operator: str, arguments: Sequence[Any]) -> Condition:
        if len(arguments) != 3:
            raise Unsupported("Its sem_ver does not have three operands.")
        name, value, constant_first = self._read_pair([arguments[0], arguments[2]])
        if name is None or constant_first:
            raise Unsupported("Its sem_ver does not compare a variable with a version.")
        return compare_versions(name, str(arguments[1]), format_text(value))

    def _read_if(self, operator: str, arguments: Sequence[Any]) -> Condition:
        earlier: list[Condition] = []
        parts: list[Condition] = []
        for when, then in list_branches(arguments):
            condition = ALWAYS if when is None else self.read_condition(when)
            parts.append(All((*earlier, condition, self.read_condition(then))))
            earlier.append(Not(condition))
        return AnyOf(tuple(parts))


def split_operation(rule: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
    """The operator and its arguments. Raises Unsupported."""
    if len(rule) != 1:
        raise Unsupported("Its targeting has an object that is not one operator with its operands.")
    [(operator, arguments)] = rule.items()
    return operator, arguments if isinstance(arguments, list) else [arguments]


def list_branches(arguments: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """(condition, result) of an ``if``; the condition is None for the else branch."""
    for index in range(0, len(arguments) - 1, 2):
        yield arguments[index], arguments[index + 1]
    yield None, arguments[-1] if len(arguments) % 2 else None


_ORDERS = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
_READERS: Mapping[str, Callable[[Logic, str, Sequence[Any]], Condition]] = {
    **dict.fromkeys(("and", "or"), Logic._read_all),
    **dict.fromkeys(("!", "!!"), Logic._read_not),
    **dict.fromkeys(("==", "===", "!=", "!=="), Logic._read_equal),
    **dict.fromkeys(FLIPPED, Logic._read_order),
    **dict.fromkeys(("starts_with", "ends_with"), Logic._read_text),
    "in": Logic._read_in,
    "sem_ver": Logic._read_version,
    "if": Logic._read_if,
    "?:": Logic._read_if,
}
