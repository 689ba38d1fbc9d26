"""Validates an environment's name and type."""

from collections.abc import Iterator

from flagadmin.core.errors import Problem
from projects.models import Environment
from projects.rules import name_problems
from projects.strategies.strategy_type_rules import MAX_TYPE_LENGTH

# Used in place of a name in URLs below /api/admin/environments/.
RESERVED_ENVIRONMENTS = frozenset({"project", "sort-order", "update", "validate"})


def environment_problems(environment: Environment) -> Iterator[Problem]:
    # An environment of an earlier version may have such a name, and can be edited.
    reserved = RESERVED_ENVIRONMENTS if environment._state.adding else ()
    yield from name_problems(environment.name, reserved=reserved)
    if not 1 <= len(environment.type) <= MAX_TYPE_LENGTH:
        yield Problem("type", f"must have 1 to {MAX_TYPE_LENGTH} characters")
