"""Checks what strategies would be stored as, under the locks of their action."""

from collections.abc import Mapping, Sequence
from typing import Any

from flagadmin.core.errors import ValidationError
from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.limits import Limits
from projects.models import Flag, Strategy
from projects.project_scope import hold_segments
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.rules import StrategyDefaults, plan_strategy

Variants = Sequence[VariantDefinition]


def check_strategy(
    flag: Flag, values: Mapping[str, Any], *, stored_variants: Variants = ()
) -> StrategyDefinition:
    """The document to store for the given values. Raises ValidationError with every problem."""
    [document] = check_strategies(flag.project_id, [(flag, values, stored_variants)])
    return document


def check_strategies(
    project_id: str, wanted: Sequence[tuple[Flag, Mapping[str, Any], Variants]]
) -> list[StrategyDefinition]:
    """As `check_strategy`, of flags of one project. Raises ValidationError for the first that has problems."""
    hold_segments(segment for _, values, _ in wanted for segment in values.get("segments") or ())
    known_names, limits = load_known_names(project_id), Limits.from_settings()
    return [_check(*each, known_names, limits) for each in wanted]


def _check(
    flag: Flag, values: Mapping[str, Any], stored_variants: Variants, known_names: KnownNames, limits: Limits
) -> StrategyDefinition:
    document, problems = plan_strategy(
        values,
        "",
        defaults=StrategyDefaults(flag=flag.name, stickiness=flag.project.default_stickiness),
        known_names=known_names,
        limits=limits,
        stored_variants=stored_variants,
    )
    check_values(problems)
    return document


def check_room_for_strategy(flag: Flag, environment: str) -> None:
    """Raises ValidationError if the flag has the maximum number of strategies. The flag must be locked."""
    number = Strategy.objects.filter(flag=flag, environment_id=environment).count()
    check_number_of_strategies(flag, environment, number)


def check_number_of_strategies(flag: Flag, environment: str, number: int) -> None:
    """Raises ValidationError if a flag with this many strategies cannot get another."""
    limit = Limits.from_settings().strategies
    if number >= limit:
        raise ValidationError(f"{flag.name} has {limit} strategies in {environment}, the maximum.")
