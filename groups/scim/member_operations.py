"""Reads what the operations of a PATCH do to the members of a group."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scim2_models import PatchOperation
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator

from groups.scim.errors import ScimRefused
from groups.scim.member_changes import MemberChanges
from groups.scim.values import read_members

MEMBERS = "members"


def take_member_operations(operations: Iterable[PatchOperation[Any]]) -> tuple[MemberChanges, list[Any]]:
    """The changes of members, and the other operations. Raises ScimRefused."""
    changes, others = MemberChanges(), list[Any]()
    for operation in operations:
        if operation.path is None:
            others += _take_from_value(operation, changes)
        elif operation.path.attr.lower() == MEMBERS:
            _apply(operation.op.value, operation.path.value_filter, operation.value, changes)
        else:
            others.append(operation)
    return changes, others


def _take_from_value(operation: PatchOperation[Any], changes: MemberChanges) -> Iterator[Any]:
    """An operation without a path has an object, whose members are attributes."""
    value = operation.value
    if not isinstance(value, Mapping):
        raise ScimRefused("An operation without a path needs an object as its value.", "invalidValue")
    rest = {}
    for name, inner in value.items():
        if name.lower() == MEMBERS:
            _apply(operation.op.value, None, inner, changes)
        else:
            rest[name] = inner
    if rest:
        yield operation.model_copy(update={"value": rest})


def _apply(kind: str, selected: FilterNode | None, value: Any, changes: MemberChanges) -> None:
    if selected is not None and kind != "remove":
        raise ScimRefused("Members can be added and removed, not changed.", "mutability")
    ids = read_members(value) if value is not None else None
    if selected is not None:
        changes.remove(set(_select(selected)))
    elif kind == "add":
        changes.add(ids or set())
    elif kind == "remove" and ids is not None:  # as Entra sends it
        changes.remove(ids)
    else:
        changes.replace(ids or set())


def _select(node: FilterNode) -> Iterator[int]:
    """The ids in ``value eq "7" or value eq "8"``."""
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.or_:
        for term in node.terms:
            yield from _select(term)
    elif (
        isinstance(node, Comparison)
        and node.op is CompareOperator.eq
        and node.attr_path.attr.lower() == "value"
    ):
        yield from read_members(node.value)
    else:
        raise ScimRefused(f"{node} does not select members by their value.", "invalidFilter")
