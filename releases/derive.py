"""Compares an environment's results before and after a change, and derives the actions that make the difference."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from playground.engine.definitions import FlagDefinition, SegmentDefinition, StrategyDefinition
from projects.definitions import Definitions, find_unequal
from projects.fingerprint import list_evaluated
from projects.rules import Limits
from projects.states import Change, Part, change_parents, changes_there, match

NOT_ANSWERED = ("stale", "project", "archived")
"""Members of a flag that affect neither its result nor what SDKs report of it."""


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
    """The flags, and the segments used by flags, whose results differ.

    A disabled flag counts as missing, whatever its strategies are, unless any difference counts.
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
    """Drops members that do not affect results, such as the order of parents."""
    document: dict[str, Any] = {key: value for key, value in flag.items() if key not in NOT_ANSWERED}
    document["dependencies"] = sorted(flag["dependencies"], key=lambda parent: parent["feature"])
    return document


def _evaluated(flag: FlagDefinition) -> dict[str, Any]:
    return {**_stored(flag), "strategies": list_evaluated(flag["strategies"])}


def _used_segments(read: Definitions, answered: Mapping[str, Any]) -> set[int]:
    return {
        segment
        for flag in read.flags
        if flag["name"] in answered
        for strategy in answered[flag["name"]]["strategies"]
        for segment in strategy["segments"]
    }


def find_users(read: Definitions, segments: Collection[int]) -> set[str]:
    """The flags whose results depend on one of these segments."""
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
    """Derives the actions that lead from one state to the other, for the names from `find_differing`.

    `archived` names the flags that are archived afterwards. None if no actions lead there: a change of one environment
    cannot create, move or delete a flag.
    """
    flags, segments = find_differing(before, after, answers_only=answers_only)
    old, new = before.by_name(), after.by_name()
    changes: list[ProposedChange] = []
    for name in flags:
        if name not in old or (name not in new and name not in archived):
            return None
        if name in new:
            changes += _changes_of_flag(old[name], new[name])
        else:
            changes.append(ProposedChange(name, "archiveFeature", None))
    for key in segments:
        segment = {member: after.segments[key][member] for member in ("id", "name", "constraints")}
        changes.append(ProposedChange("", "updateSegment", segment))
    return changes


def _changes_of_flag(before: FlagDefinition, after: FlagDefinition) -> Iterator[ProposedChange]:
    name = after["name"]
    made = _list_changes(before, after)
    parents = change_parents(before["dependencies"], after["dependencies"])
    impressions = [before["impression_data"], after["impression_data"]]
    if impressions[0] != impressions[1]:
        made.append(Change("updateImpressionData", Part("", "impressionData"), *impressions))
    for change in sorted([*made, *parents], key=lambda change: change.action == "updateEnabled"):
        yield ProposedChange(name, change.action, _make_payload(change))


def _list_changes(before: FlagDefinition, after: FlagDefinition) -> list[Change]:
    """A replacement of a strategy, as in an import, gets its id, and keeps its position if its own says nothing."""
    old = {strategy["id"]: strategy for strategy in before["strategies"]}
    known: list[Any] = [each if each["id"] in old else {**each, "id": ""} for each in after["strategies"]]
    new = {strategy["id"]: strategy for strategy in match(before["strategies"], known)}
    places = {} if _stay_in_place(old, new) else {key: place for place, key in enumerate(new)}
    orders = {key: each["sortOrder"] for key, each in new.items()} | places
    orders |= {key: each["sortOrder"] for key, each in old.items()}
    wanted: Any = {
        **after,
        "strategies": [{**each, "sortOrder": orders[key]} for key, each in new.items()],
    }
    made = changes_there("", before, wanted, most=Limits.from_settings().strategies)
    if moved := {key: place for key, place in places.items() if key in old}:
        number = sum(change.part.member == "strategies" for change in made)
        made.insert(number, Change("reorderStrategy", Part("", "order"), {}, moved))
    return made


def _make_payload(change: Change) -> Any:
    key, after = change.part.key, change.after
    match change.action:
        case "addStrategy":
            return {member: value for member, value in after.items() if member != "id"}
        case "updateStrategy":
            return {"id": key, **after}
        case "deleteStrategy":
            return {"id": key}
        case "reorderStrategy":
            return [{"id": each, "sortOrder": place} for each, place in after.items()]
        case "deleteDependency":
            return {"feature": key}
        case "addDependency":
            return dict(after)
    return {change.part.member: after}


def _stay_in_place(old: Mapping[str, StrategyDefinition], new: Mapping[str, StrategyDefinition]) -> bool:
    """Whether the new order follows without moving kept strategies. A tie with an added one leaves it open."""
    if [key for key in old if key in new] != [key for key in new if key in old]:
        return False
    places = {key: old.get(key, strategy)["sortOrder"] or 0 for key, strategy in new.items()}
    return all({a, b} <= old.keys() or places[a] < places[b] for a, b in pairwise(new))
