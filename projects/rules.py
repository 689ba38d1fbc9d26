"""Validation rules for several models: names, colors, lists of objects. They yield every problem found.

Limits on the number and length of a project's contents, from the settings.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from flagadmin.core.errors import Problem
from projects.flags.name_rules import find_name_problem

COLOR = re.compile(r"#[0-9A-Fa-f]{6}\Z")


def name_problems(
    name: str, path: str = "name", *, shortest: int = 1, reserved: Collection[str] = ()
) -> Iterator[Problem]:
    """Rules for a name that is used in URLs: letters, digits and ``- . _ ~``, which need no escaping.

    ``reserved``: words that URLs use in place of a name.
    """
    if name in reserved:
        yield Problem(path, f"{name} is reserved and cannot be used")
    elif problem := find_name_problem(name):
        yield Problem(path, problem)
    elif len(name) < shortest:
        yield Problem(path, f"must have at least {shortest} characters")


def text_problems(value: Any, path: str) -> Iterator[Problem]:
    if value is not None and not isinstance(value, str):
        yield Problem(path, "must be a string")


def tidy(items: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The objects with only these keys, in this order: the stored form."""
    return [{key: item[key] for key in keys if item.get(key) is not None} for item in items]


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum numbers of flags, strategies, constraints and so on.

    The defaults are those of the reference.
    """

    strategies: int = 30
    constraints: int = 30
    constraint_values: int = 250  # of a strategy, for each constraint
    segment_values: int = 1000  # of a segment, for all its constraints together, except a list
    segment_list: int = 10_000  # of the list of a segment
    value_length: int = 100
    segments: int = 5
    links: int = 10
    flags: int = 200_000

    @classmethod
    def from_settings(cls) -> "Limits":
        return cls(
            strategies=settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT,
            constraints=settings.STRATEGY_CONSTRAINTS_LIMIT,
            constraint_values=settings.CONSTRAINT_VALUES_LIMIT,
            segment_values=settings.SEGMENT_VALUES_LIMIT,
            segment_list=max(settings.SEGMENT_LIST_LIMIT, settings.SEGMENT_VALUES_LIMIT),
            value_length=settings.CONSTRAINT_VALUE_LENGTH_LIMIT,
            segments=settings.STRATEGY_SEGMENTS_LIMIT,
            links=settings.FLAG_LINKS_LIMIT,
            flags=settings.FLAGS_LIMIT,
        )
