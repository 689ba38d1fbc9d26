"""Adds, changes, removes and reorders the strategies of a flag in an environment."""

from collections.abc import Mapping, Sequence
from typing import Any

from flagadmin.core.edit_conflicts import Expected
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition
from projects.strategies.planned import Edit, PlannedFlag
from projects.strategies.rules import merge_strategy
from projects.strategies.write import change_flag


def add_strategy(
    project_id: str, name: str, environment: str, values: Mapping[str, Any], *, caller: Caller
) -> StrategyDefinition:
    """Adds a strategy and returns its document. Without ``sortOrder`` it becomes the last one.

    Raises the errors of `change_flags`.
    """
    place = project_id, name, environment, Permission.CREATE_FEATURE_STRATEGY
    return change_flag(*place, lambda planned: planned.add_strategy(values), caller=caller)


def update_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    values: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition:
    """Changes the given members of a strategy (``merge_strategy``) and returns its document.

    Raises EditConflict, and the errors of `change_flags`.
    """
    place = project_id, name, environment, strategy_id
    return edit_strategy(
        *place, lambda before: merge_strategy(before, values), expected=expected, caller=caller
    )


def update_for_some(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    values: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Changes a strategy, and adds the old version right after it, for users whom the new conditions exclude.

    Raises EditConflict, and the errors of `change_flags`.
    """

    def plan(planned: PlannedFlag) -> None:
        before = planned.find_strategy(strategy_id)
        planned.edit_strategy(strategy_id, lambda stored: merge_strategy(stored, values), expected)
        planned.require(Permission.CREATE_FEATURE_STRATEGY)
        planned.add_strategy(before)

    change_flag(project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY, plan, caller=caller)


def edit_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    edit: Edit,
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition:
    """Replaces a strategy with the result of `edit` and returns the new document.

    Missing members get their defaults, except ``sortOrder``, which stays. Raises EditConflict, and the errors of
    `change_flags`.
    """
    place = project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY
    return change_flag(
        *place, lambda planned: planned.edit_strategy(strategy_id, edit, expected), caller=caller
    )


def remove_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    *,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Removes a strategy. If it was the last enabled one, the flag is turned off in the environment.

    Raises EditConflict, and the errors of `change_flags`.
    """
    place = project_id, name, environment, Permission.DELETE_FEATURE_STRATEGY
    change_flag(*place, lambda planned: planned.remove_strategy(strategy_id, expected), caller=caller)


def order_strategies(
    project_id: str, name: str, environment: str, orders: Sequence[tuple[str, int]], *, caller: Caller
) -> None:
    """Sets sort orders from (id, sort order) pairs. Other strategies keep theirs.

    Raises the errors of `change_flags`, and ValidationError for ids of strategies that the flag does not have there.
    """
    place = project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY
    change_flag(*place, lambda planned: planned.order_strategies(orders), caller=caller)
