"""Validation rules for several models: names, colors, lists of objects. They yield every problem found."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

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
