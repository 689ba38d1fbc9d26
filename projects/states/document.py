"""The documents of a flag and of its changes; pairing of strategies, and whether strategies leave it on.

A flag's versions have the form of its document, and so do audit events of a deleted or reverted flag. The document of a
flag in one environment is also part of the engine's definitions and of imports.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple, NotRequired, TypedDict, TypeVar

from playground.engine.definitions import (
    DependencyDefinition,
    SegmentDefinition,
    StrategyDefinition,
    VariantDefinition,
)

MAX_SORT_ORDER = 2**31 - 1


class EnvironmentState(TypedDict):
    """A flag in one environment. Each strategy has an ``id``; they are in order."""

    enabled: bool
    variants: list[VariantDefinition]
    strategies: list[StrategyDefinition]


class NamedEnvironmentState(EnvironmentState):
    name: str


class FlagState(TypedDict):
    """A flag in all environments, by name. Environments without settings may be missing."""

    name: str
    project: str
    createdAt: NotRequired[Any]
    archived: bool
    description: str | None
    type: str
    owner: NotRequired[Any]
    stale: bool
    impressionData: bool
    dependencies: list[DependencyDefinition]
    environments: list[NamedEnvironmentState]


class SegmentState(SegmentDefinition):
    """A segment as in its API and audit events. ``project`` is missing in one of all projects."""

    description: str | None
    createdBy: Any
    createdAt: str
    project: NotRequired[str]


DETAIL_MEMBERS = ("description", "type", "owner", "stale", "impressionData")
"""The members of a flag that all environments share and that are independent of each other."""
NOTHING: EnvironmentState = {"enabled": False, "variants": [], "strategies": []}
"""A flag in an environment without settings."""


class Part(NamedTuple):
    """A part that changes separately: a member of a flag, or one of its strategies or parents, named by ``key``.

    ``environment`` is "" for parts that all environments share.
    """

    environment: str
    member: str
    key: str = ""


class Change(NamedTuple):
    """One change. ``action`` is its name in change requests; None stands for a missing strategy or parent.

    ``before`` and ``after`` of an updated strategy have only the changed members; of an order, sort orders by id.
    """

    action: str
    part: Part
    before: Any
    after: Any


def change_strategy(
    key: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, environment: str = ""
) -> Change:
    """A strategy that is added (``before`` is None), edited or removed (``after`` is None)."""
    action = "addStrategy" if before is None else "deleteStrategy" if after is None else "updateStrategy"
    return Change(action, Part(environment, "strategies", key), before, after)


def by_environment(flag: FlagState) -> dict[str, EnvironmentState]:
    """The flag's state in each environment, by name."""
    return {
        place["name"]: {
            "enabled": place["enabled"],
            "variants": place["variants"],
            "strategies": place["strategies"],
        }
        for place in flag["environments"]
    }


def with_environments(flag: FlagState, places: Mapping[str, EnvironmentState], **members: Any) -> FlagState:
    """The flag with these environments, by name, and with these other members."""
    environments = [{"name": name, **places[name]} for name in sorted(places)]
    edited: Any = {**flag, **members, "environments": environments}
    return edited


# Strategies --------------------------------------------------------------------------------------------------------
#
# SDKs treat a flag without strategies as on for everyone. So a flag without an enabled one gets one when it is turned
# on, and is turned off when it loses its last.

Place = TypeVar("Place", bound=Mapping[str, Any])
"""A document with the members of a flag in an environment, and maybe others."""


def has_enabled(strategies: Iterable[Mapping[str, Any]]) -> bool:
    return any(not strategy.get("disabled") for strategy in strategies)


def with_strategies(place: Place, strategies: Sequence[Mapping[str, Any]]) -> Place:
    """The flag with these remaining strategies. A flag that has lost its last enabled strategy is off."""
    edited: Any = {**place, "strategies": strategies}
    edited["enabled"] = place["enabled"] and has_enabled(strategies)
    return edited


def turn_on(place: Place, default: Mapping[str, Any] | None) -> Place:
    """The flag turned on, with ``default``, if given, as its last strategy if none is enabled."""
    strategies = place["strategies"]
    if default is not None and not has_enabled(strategies):
        strategies = [*strategies, default]
    edited: Any = {**place, "strategies": strategies, "enabled": True}
    return edited


def in_order(strategies: Iterable[StrategyDefinition]) -> list[StrategyDefinition]:
    """Sorted by sort order, then by id. Unstored ones have no id, and come last."""

    def place(strategy: StrategyDefinition) -> tuple[int, bool, str]:
        key = strategy.get("id", "")
        return strategy["sortOrder"] or 0, not key, key

    return sorted(strategies, key=place)


def next_sort_order(strategies: Iterable[Mapping[str, Any]]) -> int:
    """The sort order of a strategy added as the last, at most that of the column."""
    last = max((strategy["sortOrder"] or 0 for strategy in strategies), default=-1)
    return min(last + 1, MAX_SORT_ORDER)


def get_content(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """A strategy without its id and position."""
    return {key: value for key, value in strategy.items() if key not in ("id", "sortOrder")}


def match(old: Iterable[StrategyDefinition], new: Sequence[StrategyDefinition]) -> list[StrategyDefinition]:
    """The new strategies, each with an id.

    One without an id gets that of the strategy that it replaces: of an equal one, else of one with its type. All
    others are added, and get ids that are unique among these.
    """
    ids = [strategy.get("id", "") for strategy in new]
    free = [strategy for strategy in old if strategy["id"] not in ids]
    looks: tuple[Any, ...] = (get_content, itemgetter("name"))
    for look in looks:
        for index, strategy in enumerate(new):
            twin = next((former for former in free if look(former) == look(strategy)), None)
            if twin is not None and not ids[index]:
                ids[index] = twin["id"]
                free.remove(twin)
    fresh = list_fresh_ids({*ids, *(strategy["id"] for strategy in free)})
    return [{**strategy, "id": key or next(fresh)} for strategy, key in zip(new, ids, strict=True)]


def list_fresh_ids(taken: Container[str]) -> Iterator[str]:
    """Ids for strategies that are not stored yet."""
    return (key for key in (f"new-{number}" for number in count(1)) if key not in taken)
