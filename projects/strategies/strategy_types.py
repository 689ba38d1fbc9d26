"""Creates, changes, deprecates and deletes custom strategy types, which are global."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, InvalidOperation, check_problems
from groups.access import Caller, Permission
from projects.models import ProjectEnvironment, Strategy, StrategyType
from projects.project_scope import name_is_free
from projects.strategies.rules import strategy_type_problems
from projects.used_by.queries import describe_uses, find_planned

STANDARD = "default"


@transactional
def create_strategy_type(values: Mapping[str, Any], *, caller: Caller) -> StrategyType:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    caller.check(Permission.CREATE_STRATEGY)
    strategy_type = StrategyType(**values, built_in=False)
    check_strategy_type(strategy_type)
    with name_is_free(f"A strategy type named {strategy_type.name} already exists."):
        strategy_type.save(force_insert=True)
    after = strategy_type.document()
    record(Event(type=EventType.STRATEGY_CREATED, subject=strategy_type.name, after=after), actor=caller)
    return strategy_type


@transactional
def update_strategy_type(
    name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> StrategyType:
    """Changes the given model fields.

    Raises NotFound, NoAccess, InvalidOperation, EditConflict, ValidationError.
    """
    strategy_type = access_strategy_type_for_update(caller, name, Permission.UPDATE_STRATEGY)
    check_not_built_in(strategy_type)
    check_expected(expected, strategy_type.document())
    return _change(strategy_type, changes, EventType.STRATEGY_UPDATED, caller)


@transactional
def deprecate_strategy_type(name: str, *, caller: Caller) -> StrategyType:
    """Stops offering the type for new strategies. Existing strategies keep working.

    Raises NotFound, NoAccess, InvalidOperation.
    """
    strategy_type = access_strategy_type_for_update(caller, name, Permission.UPDATE_STRATEGY)
    if name == STANDARD:
        raise InvalidOperation("The default strategy type cannot be deprecated.")
    return _change(strategy_type, {"deprecated": True}, EventType.STRATEGY_DEPRECATED, caller)


@transactional
def reactivate_strategy_type(name: str, *, caller: Caller) -> StrategyType:
    strategy_type = access_strategy_type_for_update(caller, name, Permission.UPDATE_STRATEGY)
    return _change(strategy_type, {"deprecated": False}, EventType.STRATEGY_REACTIVATED, caller)


@transactional
def delete_strategy_type(name: str, *, expected: Expected = None, caller: Caller) -> None:
    """Raises InvalidOperation for built-in types, EditConflict, and Conflict if strategies have the type."""
    strategy_type = access_strategy_type_for_update(caller, name, Permission.DELETE_STRATEGY)
    check_not_built_in(strategy_type)
    before = strategy_type.document()
    check_expected(expected, before)
    check_strategy_type_is_unused(strategy_type, caller)
    record(Event(type=EventType.STRATEGY_DELETED, subject=name, before=before), actor=caller)
    strategy_type.delete()


def check_strategy_type_is_unused(strategy_type: StrategyType, caller: Caller | None = None) -> None:
    """Raises Conflict with the flags, default strategies and release plans that use the type."""
    name = strategy_type.name
    strategies = Strategy.objects.filter(name=name)
    defaults = ProjectEnvironment.objects.filter(default_strategy__name=name)
    if uses := describe_uses(strategies, defaults, find_planned({"name": name}), caller=caller):
        raise Conflict(f"Strategy type {name} is in use {uses}. Change these, or deprecate the type.")


def _change(
    strategy_type: StrategyType, changes: Mapping[str, Any], kind: EventType, caller: Caller
) -> StrategyType:
    before = strategy_type.document()
    for key, value in changes.items():
        setattr(strategy_type, key, value)
    check_strategy_type(strategy_type)
    strategy_type.save()
    after = strategy_type.document()
    record_change(Event(type=kind, subject=strategy_type.name, before=before, after=after), actor=caller)
    return strategy_type


def access_strategy_type(name: str) -> StrategyType:
    """A strategy type. Raises NotFound."""
    return get_or_404(StrategyType.objects, f"Strategy type {name} not found.", pk=name)


def access_strategy_type_for_update(caller: Caller, name: str, permission: Permission) -> StrategyType:
    """The strategy type, locked. Raises NotFound, NoAccess."""
    access_strategy_type(name)
    caller.check(permission)
    return get_or_404(StrategyType.objects.select_for_update(), f"Strategy type {name} not found.", pk=name)


def check_not_built_in(strategy_type: StrategyType) -> None:
    if strategy_type.built_in:
        raise InvalidOperation(f"Strategy type {strategy_type.name} is built in and cannot be changed.")


def check_strategy_type(strategy_type: StrategyType) -> None:
    """Normalizes the parameters and validates the type. Raises ValidationError with every problem."""
    check_problems(strategy_type_problems(strategy_type))
    strategy_type.parameters = [
        {"name": p["name"], "type": p["type"], "description": p.get("description") or "",
         "required": p.get("required", False)}
        for p in strategy_type.parameters
    ]  # fmt: skip
