"""GrowthBook's conditions, which resemble MongoDB's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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
    compare_versions,
    complete_version,
    has_value,
    is_number,
    match_any,
    match_texts_in_any_case,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text

ID = "id"


def find_field(attribute: str) -> str:
    return "userId" if attribute == ID else attribute


class Conditions:
    """``renamed`` are the attributes whose context fields have another name."""

    def __init__(self, groups: Mapping[str, Any]) -> None:
        self._groups = groups
        self._depth = 0
        self.renamed = {ID: "userId"}

    def read(self, condition: Any) -> Condition:
        """Raises Unsupported."""
        if not isinstance(condition, Mapping):
            raise Unsupported("A condition is not an object.")
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise Unsupported(f"Its conditions are nested deeper than {MAX_DEPTH} levels.")
            return All(tuple(self._read_entries(condition)))
        finally:
            self._depth -= 1

    def _read_entries(self, condition: Mapping[str, Any]) -> Iterator[Condition]:
        for name, value in condition.items():
            if name in ("$or", "$nor", "$and"):
                yield self._list(name, value)
            elif name == "$not":
                yield Not(self.read(value))
            elif name == "$savedGroup":
                yield self._read_saved_group(value)
            elif name.startswith("$"):
                raise Unsupported(f"The operator {name[:60]} has no equivalent.")
            else:
                yield self._read_value(find_field(name), value)

    def _list(self, operator: str, conditions: Any) -> Condition:
        if not isinstance(conditions, list):
            raise Unsupported(f"{operator} of a condition is not a list.")
        parts = tuple(map(self.read, conditions))
        if operator == "$and":
            return All(parts)
        either = AnyOf(parts) if parts else ALWAYS
        return Not(either) if operator == "$nor" else either

    def _read_saved_group(self, reference: Any) -> Condition:
        group = self._groups.get(str(reference.get("id"))) if isinstance(reference, Mapping) else None
        if not isinstance(group, Mapping):
            raise Unsupported("A condition refers to a saved group that is not in the file.")
        if group.get("type") == "condition":
            return self.read(group.get("condition"))
        attribute = reference.get("attributeKey", group.get("attributeKey"))
        return match_any(find_field(str(attribute)), _read_texts(group.get("values")))

    def _read_value(self, field: str, value: Any) -> Condition:
        if isinstance(value, Mapping):
            if not all(name.startswith("$") for name in value):
                raise Unsupported(f"It compares {field} with an object.")
            return All(tuple(self._read_operator(field, name, operand) for name, operand in value.items()))
        return _read_equal(field, value)

    def _read_operator(self, field: str, operator: str, operand: Any) -> Condition:
        if operator == "$not":
            return Not(self._read_value(field, operand))
        if operator in ("$inGroup", "$notInGroup"):
            group = self._groups.get(str(operand))
            values = group.get("values") if isinstance(group, Mapping) else group
            members = match_any(field, _read_texts(values or []))
            return Not(members) if operator == "$notInGroup" else members
        read = _OPERATORS.get(operator)
        if read is None:
            raise Unsupported(f"The operator {operator[:60]} has no equivalent.")
        return read(field, operand)


def _read_texts(values: Any) -> Sequence[str]:
    if not isinstance(values, list) or any(
        isinstance(value, list | Mapping) or value is None for value in values
    ):
        raise Unsupported("A list of values has lists, objects or nothing in it.")
    return [format_text(value) for value in values]


def _read_equal(field: str, value: Any) -> Condition:
    if value is None:
        return Not(has_value(field))
    return compare_equal(field, value)


def _compare_order(relation: str, field: str, limit: Any) -> Condition:
    if not is_number(limit):
        raise Unsupported(f"It compares the order of {field} with what is not a number.")
    return compare_number(field, relation, limit)


def _compare_version(relation: str, field: str, limit: Any) -> Condition:
    version = format_text(limit)
    if relation == "!=":
        return Not(Test(field, "SEMVER_EQ", value=complete_version(version)))
    return compare_versions(field, relation, version)


def _read_member(field: str, values: Any) -> Condition:
    return match_any(field, _read_texts(values))


def _read_member_in_any_case(field: str, values: Any) -> Condition:
    """Makes patterns for the whole text, ignoring case."""
    texts = _read_texts(values)
    return match_texts_in_any_case(field, texts) if texts else NEVER


def _match_pattern(field: str, pattern: Any, *, case_insensitive: bool = False) -> Condition:
    return Test(field, "REGEX", value=str(pattern), case_insensitive=case_insensitive)


def _negate(read: Callable[[str, Any], Condition]) -> Callable[[str, Any], Condition]:
    return lambda field, operand: Not(read(field, operand))


def _read_exists(field: str, exists: Any) -> Condition:
    return has_value(field) if exists else Not(has_value(field))


_OPERATORS: Mapping[str, Callable[[str, Any], Condition]] = {
    "$eq": _read_equal,
    "$ne": _negate(_read_equal),
    "$lt": partial(_compare_order, "<"),
    "$lte": partial(_compare_order, "<="),
    "$gt": partial(_compare_order, ">"),
    "$gte": partial(_compare_order, ">="),
    "$veq": partial(_compare_version, "="),
    "$vne": partial(_compare_version, "!="),
    "$vlt": partial(_compare_version, "<"),
    "$vlte": partial(_compare_version, "<="),
    "$vgt": partial(_compare_version, ">"),
    "$vgte": partial(_compare_version, ">="),
    "$in": _read_member,
    "$nin": _negate(_read_member),
    "$ini": _read_member_in_any_case,
    "$nini": _negate(_read_member_in_any_case),
    "$regex": _match_pattern,
    "$regexi": partial(_match_pattern, case_insensitive=True),
    "$notRegex": _negate(_match_pattern),
    "$notRegexi": _negate(partial(_match_pattern, case_insensitive=True)),
    "$exists": _read_exists,
}
