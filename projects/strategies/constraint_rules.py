"""Validation rules for constraints of strategies and segments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flagadmin.core.errors import Problem, choices, clip
from flagadmin.core.unreadable_values import UnreadableValue
from playground.engine.definitions import ConstraintDefinition
from playground.engine.operators import MAX_LENGTH as MAX_VALUE_LENGTH
from playground.engine.operators import OPERATORS, find_problem, suggest_value
from projects.rules import Limits
from projects.text_values import format_scalar


def make_constraint(values: Mapping[str, Any]) -> ConstraintDefinition:
    """A constraint as stored: values are strings, and ``values`` is the only optional member that is added."""
    document: ConstraintDefinition = {
        "contextName": values["contextName"],
        "operator": values["operator"],
        "values": [format_scalar(value) for value in values.get("values") or []],
    }
    if values.get("value") is not None:
        document["value"] = format_scalar(values["value"])
    if values.get("inverted") is not None:
        document["inverted"] = bool(values["inverted"])
    if values.get("caseInsensitive") is not None:
        document["caseInsensitive"] = bool(values["caseInsensitive"])
    return document


def constraints_problems(
    constraints: Sequence[ConstraintDefinition],
    path: str,
    *,
    legal_values: Mapping[str, frozenset[str]],
    limits: Limits,
) -> Iterator[Problem]:
    """Problems of a list of constraints.

    ``path`` is the JSON path of the list ("strategies[2].constraints").
    """
    if len(constraints) > limits.constraints:
        yield Problem(path, f"must have at most {limits.constraints} constraints, not {len(constraints)}")
    for index, constraint in enumerate(constraints):
        yield from constraint_problems(
            constraint, f"{path}[{index}]", legal_values=legal_values, limits=limits
        )


def constraint_problems(
    constraint: ConstraintDefinition, path: str, *, legal_values: Mapping[str, frozenset[str]], limits: Limits
) -> Iterator[Problem]:
    """Problems of a stored constraint. The context field need not exist, because SDKs may send any field."""
    operator = constraint["operator"]
    if not constraint["contextName"]:
        yield Problem(f"{path}.contextName", "a context field name is required")
    yield from _size_problems(constraint["values"], f"{path}.values", limits)
    if (length := len(constraint.get("value") or "")) > MAX_VALUE_LENGTH:
        message = f"must have at most {MAX_VALUE_LENGTH:,} characters, not {length:,}"
        yield Problem(f"{path}.value", message)
        return
    if operator not in OPERATORS:
        yield Problem(f"{path}.operator", f"{operator} is not an operator. Available: {choices(OPERATORS)}")
        return
    if not OPERATORS[operator].family.may_invert and constraint.get("inverted"):
        yield Problem(f"{path}.inverted", f"{operator} cannot be inverted")
    legal = None if OPERATORS[operator].family.is_partial else legal_values.get(constraint["contextName"])
    for value, value_path in _list_operands(constraint, path):
        yield from _value_problems(operator, value, value_path, legal, constraint["contextName"])
    yield from _find_missing(constraint, path)


def _list_operands(constraint: ConstraintDefinition, path: str) -> Iterator[tuple[str, str]]:
    """(value, path) pairs that the operator reads.

    A ``value`` that comes with ``values`` is kept but ignored.
    """
    if OPERATORS[constraint["operator"]].takes_list:
        yield from ((value, f"{path}.values[{index}]") for index, value in enumerate(constraint["values"]))
    elif constraint.get("value"):
        yield constraint["value"], f"{path}.value"


def _find_missing(constraint: ConstraintDefinition, path: str) -> Iterator[Problem]:
    operator = constraint["operator"]
    if OPERATORS[operator].takes_list:
        if not constraint["values"]:
            yield Problem(f"{path}.values", f"{operator} needs at least one value")
    elif not constraint.get("value"):
        yield Problem(f"{path}.value", f"{operator} needs a value")


def _size_problems(values: Sequence[str], path: str, limits: Limits) -> Iterator[Problem]:
    if len(values) > limits.constraint_values:
        yield Problem(path, f"must have at most {limits.constraint_values} values, not {len(values)}")
        return
    for index, value in enumerate(values):
        if not value:
            yield Problem(f"{path}[{index}]", "a value must not be empty")
        elif len(value) > limits.value_length:
            yield Problem(
                f"{path}[{index}]",
                f"must have at most {limits.value_length} characters, not {len(value)}",
            )


def _value_problems(
    operator: str, value: str, path: str, legal: frozenset[str] | None, field: str
) -> Iterator[Problem]:
    if value and (intended := suggest_value(operator, value)):
        message = (
            f"SDKs cannot read {operator} {clip(value)} and never match it; {intended} was probably meant"
        )
        yield UnreadableValue(path, message)
    elif value and (fault := find_problem(operator, value)):
        yield Problem(path, f"{clip(value)} {fault}")
    elif value and legal is not None and value not in legal:
        yield Problem(path, f"{clip(value)} is not a legal value of {field}. Available: {choices(legal)}")
