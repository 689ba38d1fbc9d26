"""Changes between two states of a flag, their permissions, their result, and the state without a change."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from groups.permissions import Permission, Scope
from playground.engine.definitions import DependencyDefinition, StrategyDefinition
from projects.states.document import (
    DETAIL_MEMBERS,
    NOTHING,
    Change,
    EnvironmentState,
    FlagState,
    Part,
    Place,
    by_environment,
    change_strategy,
    get_content,
    has_enabled,
    in_order,
    with_environments,
    with_strategies,
)

PERMISSIONS = {
    "updateEnabled": Permission.UPDATE_FEATURE_ENVIRONMENT,
    "patchVariant": Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
    "addStrategy": Permission.CREATE_FEATURE_STRATEGY,
    "updateStrategy": Permission.UPDATE_FEATURE_STRATEGY,
    "reorderStrategy": Permission.UPDATE_FEATURE_STRATEGY,
    "deleteStrategy": Permission.DELETE_FEATURE_STRATEGY,
    "addDependency": Permission.UPDATE_FEATURE_DEPENDENCY,
    "deleteDependency": Permission.UPDATE_FEATURE_DEPENDENCY,
    "updateDetails": Permission.UPDATE_FEATURE,
    "reviveFeature": Permission.UPDATE_FEATURE,
    "archiveFeature": Permission.DELETE_FEATURE,
}
"""The permission for each action, in its environment if it has one."""
IN_ENVIRONMENT = tuple(
    needed for needed in dict.fromkeys(PERMISSIONS.values()) if needed.scope is Scope.ENVIRONMENT
)
"""Those of the changes of a flag in one environment. Each change needs its own."""
_WORDS = {
    "enabled": "whether it is on",
    "impressionData": "impression data",
    "stale": "whether it is stale",
    "archived": "whether it is archived",
}


def permissions(made: Iterable[Change]) -> list[Permission]:
    """The permissions for these changes, without duplicates, in the order of ``PERMISSIONS``."""
    actions = {change.action for change in made}
    return list(dict.fromkeys(needed for action, needed in PERMISSIONS.items() if action in actions))


def describe(part: Part) -> str:
    """The part in words: ``whether it is on in production``."""
    environment, member, key = part
    where = f" in {environment}" if environment else ""
    if member == "dependencies":
        return f"the dependency on {key}"
    if member == "strategies":
        return f"a strategy{where}" if key else f"the strategies{where}"
    return f"{_WORDS.get(member, member)}{where}"


# From two states to changes ----------------------------------------------------------------------------------------


def changes(before: FlagState, after: FlagState, *, most: int | None = None) -> list[Change]:
    """The changes that lead from one to the other, in a feasible order. ``most``: see `changes_there`."""
    found = [
        Change("updateDetails", Part("", key), before.get(key), after.get(key))
        for key in DETAIL_MEMBERS
        if before.get(key) != after.get(key)
    ]
    archival = Part("", "archived")
    if before["archived"] and not after["archived"]:
        found.append(Change("reviveFeature", archival, True, False))
    found += change_parents(before["dependencies"], after["dependencies"])
    old, new = by_environment(apply(before, found)), by_environment(after)
    for name in sorted({*old, *new}):
        found += changes_there(name, old.get(name, NOTHING), new.get(name, NOTHING), most=most)
    if after["archived"] and not before["archived"]:
        found.append(Change("archiveFeature", archival, False, True))
    return found


def change_parents(
    before: Iterable[DependencyDefinition], after: Iterable[DependencyDefinition]
) -> Iterator[Change]:
    old, new = ({parent["feature"]: parent for parent in side} for side in (before, after))
    for name in sorted(old.keys() - new.keys()):
        yield Change("deleteDependency", Part("", "dependencies", name), old[name], None)
    for name, parent in new.items():
        if old.get(name) != parent:
            yield Change("addDependency", Part("", "dependencies", name), old.get(name), parent)


def changes_there(
    environment: str, before: EnvironmentState, after: EnvironmentState, *, most: int | None = None
) -> list[Change]:
    """The same in one environment. Identifies strategies by their ids: see ``match``.

    ``most`` is the maximum number of strategies of a flag, also between two of these changes.
    """
    found = list(_change_strategies(environment, before["strategies"], after["strategies"], most))
    if before["variants"] != after["variants"]:
        found.append(
            Change("patchVariant", Part(environment, "variants"), before["variants"], after["variants"])
        )
    # Also if losing the last enabled strategy turns it off: people look for the change that turned a flag off.
    on = after["enabled"]
    if not before["enabled"] == apply_there(before, found)["enabled"] == on:
        found.append(Change("updateEnabled", Part(environment, "enabled"), not on, on))
    return found


def _change_strategies(
    environment: str,
    before: Iterable[StrategyDefinition],
    after: Iterable[StrategyDefinition],
    most: int | None,
) -> Iterator[Change]:
    old, new = ({strategy["id"]: strategy for strategy in side} for side in (before, after))

    added = [change_strategy(key, None, new[key], environment) for key in new if key not in old]
    kept = [key for key in new if key in old]
    updated = [
        change_strategy(key, *_list_differing_members(old[key], new[key]), environment)
        for key in kept
        if get_content(old[key]) != get_content(new[key])
    ]
    updated.sort(key=lambda each: bool(each.after.get("disabled")))
    # Removes enabled ones last, after adding others: without any, the flag would be turned off.
    gone = sorted((key for key in old if key not in new), key=lambda key: not old[key]["disabled"])
    removed = [change_strategy(key, old[key], None, environment) for key in gone]
    has_room = most is None or len(new) < most
    early = len(added) if has_room else max(len(added) - 1, 0)
    yield from [*removed[:-1], *added[:early], *updated, *removed[-1:], *added[early:]]
    places = [{key: side[key]["sortOrder"] for key in kept} for side in (old, new)]
    if places[0] != places[1]:
        yield Change("reorderStrategy", Part(environment, "order"), *places)


def _list_differing_members(
    before: StrategyDefinition, after: StrategyDefinition
) -> tuple[dict[str, Any], dict[str, Any]]:
    old, new = get_content(before), get_content(after)
    keys = [key for key in new if old.get(key) != new[key]]
    return {key: old.get(key) for key in keys}, {key: new[key] for key in keys}


# From changes to a state -------------------------------------------------------------------------------------------


def apply(flag: FlagState, made: Iterable[Change]) -> FlagState:
    """The flag after these changes. Reviving it turns it off everywhere."""
    places = by_environment(flag)
    for change in made:
        if environment := change.part.environment:
            places[environment] = apply_there(places.get(environment, NOTHING), [change])
        else:
            flag = _apply_one(flag, change)
        if change.action == "reviveFeature":
            places = {name: {**place, "enabled": False} for name, place in places.items()}
    return with_environments(flag, places)


def apply_there(place: Place, made: Iterable[Change]) -> Place:
    """The flag in an environment after these changes there.

    A change of a missing strategy changes nothing. Added parents come last.
    """
    for change in made:
        place = _apply_one(place, change)
    return place


def _apply_one(place: Any, change: Change) -> Any:
    _, member, key = change.part
    if member == "dependencies":
        parents = {parent["feature"]: parent for parent in place[member]} | {key: change.after}
        return {**place, member: [parent for parent in parents.values() if parent is not None]}
    if member not in ("strategies", "order"):
        return {**place, member: change.after}
    strategies = place["strategies"]
    if member == "order":
        orders = {each["id"]: each["sortOrder"] for each in strategies} | change.after
        moved: list[Any] = [{**each, "sortOrder": orders[each["id"]]} for each in strategies]
        return {**place, "strategies": in_order(moved)}
    if change.action == "addStrategy":
        return {**place, "strategies": in_order([*strategies, change.after])}
    others = [each for each in strategies if each["id"] != key]
    edited = [{**each, **change.after} for each in strategies if each["id"] == key and change.after]
    return place if len(others) == len(strategies) else with_strategies(place, in_order(others + edited))


# Without a change --------------------------------------------------------------------------------------------------


ABSENT: Any = object()
"""The value of a missing strategy or parent."""


class Merged(NamedTuple):
    """``state`` is the resulting flag; ``conflicts`` are the parts that have changed again since."""

    state: FlagState
    conflicts: list[Part]


def without(now: FlagState, after: FlagState, before: FlagState) -> Merged:
    """The flag ``now`` without the change that led from ``before`` to ``after``.

    Keeps parts that the change did not touch, and parts that have changed again. A flag that loses its last enabled
    strategy is off: without one it would be on for everyone.
    """
    merge = _Merge()
    members: dict[str, Any] = {
        key: merge.choose(Part("", key), now.get(key), after.get(key), before.get(key))
        for key in (*DETAIL_MEMBERS, "archived")
    }
    members["dependencies"] = merge.choose_parents(now, after, before)
    places = [by_environment(state) for state in (now, after, before)]
    environments = {
        name: merge.choose_place(name, *(place.get(name, NOTHING) for place in places))
        for name in _list_keys(places)
    }
    return Merged(with_environments(now, environments, **members), list(dict.fromkeys(merge.conflicts)))


def is_changed_again(now: Any, after: Any, before: Any) -> bool:
    """Whether a changed value has since changed again, to something other than its earlier value."""
    return bool(after != before and now not in (after, before))


class _Merge:
    def __init__(self) -> None:
        self.conflicts: list[Part] = []

    def choose(self, part: Part, now: Any, after: Any, before: Any) -> Any:
        if is_changed_again(now, after, before):
            self.conflicts.append(part)
            return now
        return now if after == before else before

    def choose_parents(self, now: FlagState, after: FlagState, before: FlagState) -> list[Any]:
        """The parents in their earlier order, unless they differ now."""
        if now["dependencies"] == after["dependencies"]:
            return before["dependencies"]
        sides = [
            {parent["feature"]: parent for parent in state["dependencies"]} for state in (now, after, before)
        ]
        merged = (
            self.choose(Part("", "dependencies", key), *(side.get(key, ABSENT) for side in sides))
            for key in _list_keys(sides)
        )
        return [parent for parent in merged if parent is not ABSENT]

    def choose_place(
        self, name: str, now: EnvironmentState, after: EnvironmentState, before: EnvironmentState
    ) -> EnvironmentState:
        enabled = self.choose(Part(name, "enabled"), now["enabled"], after["enabled"], before["enabled"])
        variants = self.choose(Part(name, "variants"), now["variants"], after["variants"], before["variants"])
        sides: list[dict[str, Any]] = [
            {strategy["id"]: strategy for strategy in place["strategies"]} for place in (now, after, before)
        ]
        merged = (
            self._choose_strategy(Part(name, "strategies", key), *(side.get(key, ABSENT) for side in sides))
            for key in _list_keys(sides)
        )
        strategies = in_order(strategy for strategy in merged if strategy is not ABSENT)
        if not has_enabled(strategies):
            if enabled and not now["enabled"] and has_enabled(before["strategies"]):
                self.conflicts.append(Part(name, "strategies"))
            was_on_without = before["enabled"] and not has_enabled(before["strategies"])
            enabled = enabled and (was_on_without or not has_enabled(now["strategies"]))
        return {"enabled": enabled, "variants": variants, "strategies": strategies}

    def _choose_strategy(self, part: Part, now: Any, after: Any, before: Any) -> Any:
        """Merges member by member. For an added or removed strategy, ignores a different position."""
        if ABSENT not in (now, after, before):
            return {key: self.choose(part, now[key], after.get(key), before.get(key)) for key in now}
        if now is ABSENT or after is ABSENT or now | {"sortOrder": 0} != after | {"sortOrder": 0}:
            return self.choose(part, now, after, before)
        return before


def _list_keys(sides: Iterable[Iterable[str]]) -> Iterator[str]:
    return iter(dict.fromkeys(key for side in sides for key in side))
