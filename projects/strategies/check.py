"""Computes the stored form of strategies, under the locks of their action."""

from collections.abc import Mapping, Sequence
from typing import Any

from flagadmin.core.errors import ValidationError
from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import StrategyDefinition
from projects.limits import Limits
from projects.models import Flag, Strategy
from projects.project_scope import hold_segments
from projects.strategies.rules import StrategyDefaults, StrategyPlanner


def check_strategy(
    flag: Flag, values: Mapping[str, Any], *, stored: StrategyDefinition | None = None
) -> StrategyDefinition:
    """The document to store for the given values in place of ``stored``. Raises ValidationError with every problem."""
    [document] = check_strategies(flag.project_id, [(flag, values, stored)])
    return document


def check_strategies(
    project_id: str, wanted: Sequence[tuple[Flag, Mapping[str, Any], StrategyDefinition | None]]
) -> list[StrategyDefinition]:
    """Like `check_strategy`, for flags of one project. Raises ValidationError for the first one with problems."""
    hold_segments(segment for _, values, _ in wanted for segment in values.get("segments") or ())
    planner, documents = StrategyPlanner(project_id), []
    for flag, values, stored in wanted:
        defaults = StrategyDefaults(flag.name, flag.project.default_stickiness)
        document, problems = planner.plan(values, defaults, stored=stored)
        check_values(problems)
        documents.append(document)
    return documents


def check_room_for_strategy(flag: Flag, environment: str) -> None:
    """Raises ValidationError if the flag has the maximum number of strategies. The flag must be locked."""
    number = Strategy.objects.filter(flag=flag, environment_id=environment).count()
    check_number_of_strategies(flag, environment, number)


def check_number_of_strategies(flag: Flag, environment: str, number: int) -> None:
    """Raises ValidationError if a flag with this many strategies cannot get another."""
    limit = Limits.from_settings().strategies
    if number >= limit:
        raise ValidationError(f"{flag.name} has {limit} strategies in {environment}, the maximum.")
