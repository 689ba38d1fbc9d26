"""The fingerprint of everything that determines the results of flags in an environment. Pure: reads only the documents.

An approval covers a fingerprint. It is kept in parts, so that a refusal can name the changed ones.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from flagadmin.core.edit_conflicts import hash_document
from playground.engine.definitions import FlagDefinition
from projects.definitions import Definitions, find_unequal

Fingerprint = dict[str, str]
"""Hashes by part, such as ``variants cart`` or ``segment 7``. A disabled or missing flag has no parts."""
NOT_EVALUATED = ("id", "title", "sortOrder")
"""Members of a strategy that do not affect results. The order of the strategies does."""
UNFORESEEN: Fingerprint = {"unforeseen": ""}
"""The fingerprint of a state that cannot be reached."""
_ALL_DISABLED = "all disabled"


def list_evaluated(strategies: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The parts that affect a result: enabled strategies, without their titles and ids."""
    return [
        {key: value for key, value in strategy.items() if key not in NOT_EVALUATED}
        for strategy in strategies
        if not strategy["disabled"]
    ]


def take_fingerprint(
    read: Definitions, flags: Collection[str], segments: Collection[int] = ()
) -> Fingerprint:
    """The fingerprint of these flags and all their dependents, and of ``segments`` whether they are used or not.

    ``read`` has their parents and the segments of all of them, transitively. Ignores disabled flags, and flags whose
    parent is off and must be on: they are off, whatever else is edited.
    """
    by_name = read.by_name()
    deciding = _find_deciding(by_name, flags)
    used = {
        segment
        for name in deciding
        for strategy in list_evaluated(by_name[name]["strategies"])
        for segment in strategy["segments"]
    }
    parts = {part: value for name in deciding for part, value in _parts_of(by_name[name])}
    for key in used.union(segments) & read.segments.keys():
        parts[f"segment {key}"] = read.segments[key]["constraints"]
    return {part: hash_document(value) for part, value in parts.items()}


def _parts_of(flag: FlagDefinition) -> Iterator[tuple[str, Any]]:
    name, evaluated = flag["name"], list_evaluated(flag["strategies"])
    for strategy in evaluated:
        strategy["segments"] = sorted(strategy["segments"])
    yield f"switch {name}", True
    yield f"strategies {name}", _ALL_DISABLED if flag["strategies"] and not evaluated else evaluated
    yield f"variants {name}", flag["variants"]
    yield f"parents {name}", sorted(flag["dependencies"], key=lambda parent: parent["feature"])
    yield f"impressions {name}", flag["impression_data"]


def _find_deciding(by_name: Mapping[str, FlagDefinition], flags: Collection[str]) -> set[str]:
    """Those flags and dependents that are not off, and their parents."""
    below = _reach(flags, lambda name: _children(by_name, name))

    def list_on(names: Iterable[str]) -> list[str]:
        return [name for name in names if not _is_off(by_name, name)]

    return _reach(list_on(below), lambda name: list_on(_parents(by_name, name)))


def _reach(start: Iterable[str], follow: Callable[[str], Iterable[str]]) -> set[str]:
    found, ahead = set[str](), list(start)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += follow(name)
    return found


def _parents(by_name: Mapping[str, FlagDefinition], name: str) -> list[str]:
    return [parent["feature"] for parent in by_name[name]["dependencies"]] if name in by_name else []


def _children(by_name: Mapping[str, FlagDefinition], name: str) -> list[str]:
    return [child for child in by_name if name in _parents(by_name, child)]


def _is_off(by_name: Mapping[str, FlagDefinition], name: str, above: frozenset[str] = frozenset()) -> bool:
    """Whether it is off for everyone, because of its switch or a parent's. ``above`` ends cycles."""
    if name not in by_name or not by_name[name]["enabled"]:
        return True
    return any(
        parent["enabled"]
        and parent["feature"] not in above
        and _is_off(by_name, parent["feature"], above | {name})
        for parent in by_name[name]["dependencies"]
    )


_SENTENCES = {
    "strategies": "The strategies of {} have changed.",
    "variants": "The variants of {} have changed.",
    "parents": "The parents of {} have changed.",
    "impressions": "The impression data of {} has changed.",
    "segment": "The constraints of segment {} have changed.",
    "safeguards": "The safeguards of {} have changed.",
    "milestone": "Milestone {} would answer something else now.",
    "unforeseen": "Its effect could not be foreseen, or cannot be foreseen now.",
}


def explain_difference(
    before: Fingerprint, after: Fingerprint, segments: Mapping[int, str] | None = None
) -> list[str]:
    """Names the differing parts, one sentence each; [] if all are equal. ``segments``: their names by id."""
    parts = [key.partition(" ")[::2] for key in sorted(find_unequal(before, after))]
    switched = {name for kind, name in parts if kind == "switch"}
    sentences = []
    for kind, name in parts:
        if kind == "switch":
            sentences.append(f"{name} would be {'off' if f'switch {name}' in before else 'on'} now.")
        elif kind == "segment":
            sentences.append(_SENTENCES[kind].format((segments or {}).get(int(name), name)))
        elif name not in switched:
            sentences.append(_SENTENCES[kind].format(name))
    return sentences


def drop_switched(before: Fingerprint, after: Fingerprint) -> tuple[Fingerprint, Fingerprint]:
    """Both without the flags that are on in only one of them, and without segments that matter in only one."""
    switched = {key.partition(" ")[2] for key in find_unequal(before, after) if key.startswith("switch ")}
    left = {
        key
        for key in before.keys() | after.keys()
        if key.partition(" ")[2] not in switched
        and (not key.startswith("segment ") or key in before.keys() & after.keys())
    }
    kept = [{key: value for key, value in each.items() if key in left} for each in (before, after)]
    return kept[0], kept[1]


def list_segments(*fingerprints: Fingerprint) -> set[int]:
    """The ids of the segments that matter in one of them."""
    parts = (key.partition(" ")[::2] for each in fingerprints for key in each)
    return {int(name) for kind, name in parts if kind == "segment"}
