"""Computes the stored form of strategies, for forms that are not saved yet."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import StrategyDefinition
from projects.models import Flag
from projects.strategies.rules import StrategyDefaults, StrategyPlanner


def check_strategy(
    flag: Flag, values: Mapping[str, Any], *, stored: StrategyDefinition | None = None
) -> StrategyDefinition:
    """The document to store for the given values in place of ``stored``. Raises ValidationError with every problem."""
    defaults = StrategyDefaults(flag.name, flag.project.default_stickiness)
    document, problems = StrategyPlanner(flag.project_id).plan(values, defaults, stored=stored)
    check_values(problems)
    return document
