"""Compares what an environment answers before and after a change, and says which actions make the difference."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from playground.engine.definitions import FlagDefinition, SegmentDefinition, StrategyDefinition
from projects.definitions import Definitions, find_unequal
from projects.limits import Limits
from projects.strategies.fields import drop_sort_order

NOT_ANSWERED = ("stale", "impression_data", "project", "archived")
"""Members of a flag that decide nothing about its result."""
NOT_EVALUATED = ("id", "title", "sortOrder")


class ProposedChange(NamedTuple):
    """An action of a change request, on a flag or, without ``feature``, on a segment.

    ``path`` is its JSON path in the body that proposes it.
    """

    feature: str
    action: str
    payload: Any
    path: str = ""

    def locate(self, member: str) -> str:
        """The JSON path of one of its members."""
        return f"{self.path}.{member}" if self.path else member


class EnvironmentChanges(NamedTuple):
    """The changes of a form in an environment of a project."""

    project: str
    environment: str
    changes: Sequence[ProposedChange]


def find_differing(
    before: Definitions, after: Definitions, *, answers_only: bool = True
) -> tuple[list[str], list[int]]:
    """The flags, and the segments that flags use, that are answered differently.

    A flag that is off is as good as none, whatever its strategies are; unless any difference counts.
    """
    if answers_only:
        old, new = _answered(before), _answered(after)
    else:
        old, new = ({flag["name"]: _stored(flag) for flag in read.flags} for read in (before, after))
    flags = sorted(find_unequal(old, new))
    used = _used_segments(before, old) & _used_segments(after, new)
    segments = sorted(key for key in used if _constraints(before, key) != _constraints(after, key))
    return flags, segments


def _answered(read: Definitions) -> dict[str, Any]:
    return {flag["name"]: _evaluated(flag) for flag in read.flags if flag["enabled"]}


def _stored(flag: FlagDefinition) -> dict[str, Any]:
    return {key: value for key, value in flag.items() if key not in NOT_ANSWERED}


def _evaluated(flag: FlagDefinition) -> dict[str, Any]:
    document: dict[str, Any] = {key: value for key, value in flag.items() if key not in NOT_ANSWERED}
    document["strategies"] = list_evaluated(flag["strategies"])
    return document


def list_evaluated(strategies: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What decides an answer: strategies that are not disabled, without their titles and ids."""
    return [
        {key: value for key, value in strategy.items() if key not in NOT_EVALUATED}
        for strategy in strategies
        if not strategy["disabled"]
    ]


def _used_segments(read: Definitions, answered: Mapping[str, Any]) -> set[int]:
    return {
        segment
        for flag in read.flags
        if flag["name"] in answered
        for strategy in answered[flag["name"]]["strategies"]
        for segment in strategy["segments"]
    }


def find_users(read: Definitions, segments: Collection[int]) -> set[str]:
    """The flags that are answered with one of these segments."""
    return {
        name
        for name, flag in _answered(read).items()
        if any(key in segments for strategy in flag["strategies"] for key in strategy["segments"])
    }


def _constraints(read: Definitions, segment: int) -> Any:
    definition: SegmentDefinition | None = read.segments.get(segment)
    return definition["constraints"] if definition else None


def derive_changes(
    before: Definitions, after: Definitions, archived: Container[str], *, answers_only: bool = True
) -> list[ProposedChange] | None:
    """Derives the actions that lead from one state to the other, for the names that `find_differing` finds.

    `archived` names the flags that are archived afterwards. None if no actions lead there: a flag that is created,
    moved or deleted is no change of an environment.
    """
    flags, segments = find_differing(before, after, answers_only=answers_only)
    old, new = before.by_name(), after.by_name()
    changes: list[ProposedChange] = []
    for name in flags:
        if name not in old or (name not in new and name not in archived):
            return None
        changes += _archived(name) if name not in new else _changes_of_flag(old[name], new[name])
    changes += [ProposedChange("", "updateSegment", _segment(after.segments[key])) for key in segments]
    return changes


def _archived(name: str) -> list[ProposedChange]:
    return [ProposedChange(name, "archiveFeature", None)]


def _segment(segment: SegmentDefinition) -> dict[str, Any]:
    return {"id": segment["id"], "name": segment["name"], "constraints": segment["constraints"]}


def _changes_of_flag(before: FlagDefinition, after: FlagDefinition) -> Iterator[ProposedChange]:
    name = after["name"]
    of_strategies = list(_changes_of_strategies(name, before["strategies"], after["strategies"]))
    yield from of_strategies
    if before["variants"] != after["variants"]:
        yield ProposedChange(name, "patchVariant", {"variants": after["variants"]})
    if before["dependencies"] != after["dependencies"]:
        yield from _changes_of_parents(name, before, after)
    is_turned_off = after["enabled"] and _lose_all(before["strategies"], of_strategies)
    if before["enabled"] != after["enabled"] or is_turned_off:
        yield ProposedChange(name, "updateEnabled", {"enabled": after["enabled"]})


def _lose_all(before: Iterable[StrategyDefinition], changes: Iterable[ProposedChange]) -> bool:
    """Whether no strategy is enabled after one of the changes, which turns the flag off."""
    enabled = {strategy["id"]: not strategy["disabled"] for strategy in before}
    for number, change in enumerate(changes):
        if change.action == "reorderStrategy":
            continue
        key = change.payload.get("id", str(number))
        if change.action == "deleteStrategy":
            del enabled[key]
        elif "disabled" in change.payload:
            enabled[key] = not change.payload["disabled"]
        if change.action != "addStrategy" and not any(enabled.values()):
            return True
    return False


def _changes_of_strategies(
    name: str, before: Iterable[StrategyDefinition], after: Iterable[StrategyDefinition]
) -> Iterator[ProposedChange]:
    old = {strategy["id"]: strategy for strategy in before}
    new = {strategy["id"]: strategy for strategy in _keep_ids(old, after)}
    stay_in_place = _stay_in_place(old, new)
    if not stay_in_place:
        new = {key: {**strategy, "sortOrder": place} for place, (key, strategy) in enumerate(new.items())}
    added = [
        ProposedChange(name, "addStrategy", {k: v for k, v in strategy.items() if k != "id"})
        for key, strategy in new.items()
        if key not in old
    ]
    kept = [key for key in new if key in old]
    updated = [
        ProposedChange(name, "updateStrategy", _changed_members(old[key], new[key]))
        for key in kept
        if drop_sort_order(new[key]) != drop_sort_order(old[key])
    ]
    # An enabled one goes last, once others are there: without any, the flag would be turned off.
    gone = sorted((key for key in old if key not in new), key=lambda key: not old[key]["disabled"])
    removed = [ProposedChange(name, "deleteStrategy", {"id": key}) for key in gone]
    has_room = len(new) < Limits.from_settings().strategies
    early = len(added) if has_room else max(len(added) - 1, 0)
    yield from [*removed[:-1], *added[:early], *updated, *removed[-1:], *added[early:]]
    if kept and not stay_in_place:
        places = [{"id": key, "sortOrder": new[key]["sortOrder"]} for key in kept]
        yield ProposedChange(name, "reorderStrategy", places)


def _stay_in_place(old: Mapping[str, StrategyDefinition], new: Mapping[str, StrategyDefinition]) -> bool:
    """Whether the new order comes about without moving what is kept. A tie with an added one leaves it open."""
    if [key for key in old if key in new] != [key for key in new if key in old]:
        return False
    places = {key: old.get(key, strategy)["sortOrder"] or 0 for key, strategy in new.items()}
    return all({a, b} <= old.keys() or places[a] < places[b] for a, b in pairwise(new))


def _keep_ids(
    old: Mapping[str, StrategyDefinition], after: Iterable[StrategyDefinition]
) -> list[StrategyDefinition]:
    """The strategies afterwards. What replaces one, as an import does, gets its id, if it is equal or of its type."""
    strategies = list(after)
    gone = {**old}
    for strategy in strategies:
        gone.pop(strategy["id"], None)
    ids: dict[str, str] = {}
    for are_alike in (_are_equal, _are_of_one_type):
        for strategy in strategies:
            if strategy["id"] in old or strategy["id"] in ids:
                continue
            key = next((key for key, former in gone.items() if are_alike(former, strategy)), None)
            if key is not None:
                ids[strategy["id"]] = key
                del gone[key]
    return [{**strategy, "id": ids.get(strategy["id"], strategy["id"])} for strategy in strategies]


def _are_equal(first: StrategyDefinition, second: StrategyDefinition) -> bool:
    return drop_sort_order({**first, "id": ""}) == drop_sort_order({**second, "id": ""})


def _are_of_one_type(first: StrategyDefinition, second: StrategyDefinition) -> bool:
    return first["name"] == second["name"]


def _changed_members(before: StrategyDefinition, after: StrategyDefinition) -> dict[str, Any]:
    """Returns the changed members with its id. The place is a change of its own."""
    old: Mapping[str, Any] = drop_sort_order(before)
    changed = {key: value for key, value in drop_sort_order(after).items() if old[key] != value}
    return {"id": after["id"], **changed}


def _changes_of_parents(name: str, before: FlagDefinition, after: FlagDefinition) -> Iterator[ProposedChange]:
    parents = {parent["feature"] for parent in after["dependencies"]}
    if any(parent["feature"] not in parents for parent in before["dependencies"]):
        yield ProposedChange(name, "deleteDependency", None)
    for parent in after["dependencies"]:
        yield ProposedChange(name, "addDependency", dict(parent))
