"""Rules that several subjects share: names, colours, lists of objects. Every function yields all problems it finds."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from flagadmin.errors import Problem
from projects.flags.name_rules import name_problem

COLOR = re.compile(r"#[0-9A-Fa-f]{6}\Z")


def name_problems(name: str, path: str = "name", *, shortest: int = 1) -> Iterator[Problem]:
    """A name that stands in addresses: letters, digits and ``- . _ ~``, so that it needs no escape there."""
    if problem := name_problem(name):
        yield Problem(path, problem)
    elif len(name) < shortest:
        yield Problem(path, f"must have at least {shortest} characters")


def text_problems(value: Any, path: str) -> Iterator[Problem]:
    if value is not None and not isinstance(value, str):
        yield Problem(path, "must be a string")


def tidy(items: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The known keys that were given, in one order: what is stored of a list of objects."""
    return [{key: item[key] for key in keys if item.get(key) is not None} for item in items]
