"""Validates an environment's name and type."""

from collections.abc import Iterator

from flagadmin.core.errors import Problem
from projects.models import Environment
from projects.shared_rules import name_problems
from projects.strategies.strategy_type_rules import LONGEST_TYPE


def environment_problems(environment: Environment) -> Iterator[Problem]:
    yield from name_problems(environment.name)
    if not 1 <= len(environment.type) <= LONGEST_TYPE:
        yield Problem("type", f"must have 1 to {LONGEST_TYPE} characters")
