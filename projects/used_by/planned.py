"""Strategies that are kept for later, by apps above: they register what finds them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class PlannedUse(NamedTuple):
    """What has such a strategy, in ``words``, and its project; None: it is of all projects."""

    project: str | None
    words: str


Finder = Callable[[Mapping[str, Any]], Iterable[PlannedUse]]
_finders: list[Finder] = []


def register(finder: Finder) -> None:
    """It is called with members of a strategy's document, and only reads."""
    _finders.append(finder)


def find_planned(members: Mapping[str, Any]) -> list[PlannedUse]:
    """Finds what keeps a strategy with these members: ``{"segments": [3]}``, ``{"name": "betaUsers"}``."""
    return [use for finder in _finders for use in finder(members)]
