"""Validation rules for segments, used by the API, the console, the admin site and the import."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from flagadmin.core.errors import Problem
from playground.engine.definitions import ConstraintDefinition
from projects.limits import Limits
from projects.models import Segment
from projects.segments.lists import find_list
from projects.strategies.constraint_rules import constraints_problems

MAX_SEGMENT_NAME_LENGTH = 255


def segment_problems(
    segment: Segment, *, legal_values: Mapping[str, frozenset[str]], limits: Limits
) -> Iterator[Problem]:
    """Problems of a segment. ``legal_values`` contains only context fields that have legal values."""
    if not segment.name.strip():
        yield Problem("name", "a name is required")
    elif len(segment.name) > MAX_SEGMENT_NAME_LENGTH:
        yield Problem("name", f"must have at most {MAX_SEGMENT_NAME_LENGTH} characters")
    listed = find_list(segment.constraints)
    if len(listed) > limits.segment_list:
        yield Problem(
            "constraints[0].values", f"must have at most {limits.segment_list:,} values, not {len(listed):,}"
        )
        return
    if (count := count_values(segment.constraints) - len(listed)) > limits.segment_values:
        yield make_too_many_problem(count, limits)
        return
    yield from constraints_problems(
        segment.constraints,
        "constraints",
        legal_values=legal_values,
        limits=replace(limits, constraint_values=limits.segment_list),
    )


def typed_problems(
    constraints: Sequence[ConstraintDefinition], stored: Sequence[ConstraintDefinition], limits: Limits
) -> Iterator[Problem]:
    """Problems of constraints that were entered in place of the stored ones, rather than uploaded."""
    count, listed = count_values(constraints), find_list(constraints)
    if listed == find_list(stored):
        count -= len(listed)
    if count > limits.segment_values:
        yield make_too_many_problem(count, limits)


def make_too_many_problem(count: int, limits: Limits) -> Problem:
    message = f"must have at most {limits.segment_values:,} values in all, not {count:,}."
    return Problem("constraints", f"{message} Upload a list for up to {limits.segment_list:,}.")


def count_values(constraints: Iterable[ConstraintDefinition]) -> int:
    return sum(len(constraint["values"]) for constraint in constraints)
