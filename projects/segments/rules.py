"""Validation rules for segments, used by the API, the console, the admin site and the import."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from flagadmin.core.errors import Problem
from projects.limits import Limits
from projects.models import Segment
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
    count = sum(len(constraint["values"]) for constraint in segment.constraints)
    if count > limits.segment_values:
        yield Problem(
            "constraints", f"must have at most {limits.segment_values:,} values in all, not {count:,}"
        )
        return
    yield from constraints_problems(
        segment.constraints,
        "constraints",
        legal_values=legal_values,
        limits=replace(limits, constraint_values=limits.segment_values),
    )
