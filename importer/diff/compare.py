"""What differs between two sides, and the number of users whose result changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from flagadmin.core import errors
from flagadmin.core.document import Document
from flagadmin.core.wording import choices
from importer.as_code.measure import compare_definitions, describe_users, narrow
from importer.diff.sides import UNNAMED, Side, make_definitions
from playground.comparison.unmeasured import find_most_affected, find_unmeasured
from playground.comparison.who_changes import Contexts, WhoChanges
from playground.engine.context import Context
from projects.definitions import Definitions

MAX_PARTS = 20
"""The differences of a flag that are listed."""


class Above(NamedTuple):
    """A flag that changes for more than the limit. ``share`` is None if generated users cannot tell it."""

    flag: str
    environment: str
    share: float | None

    @property
    def sentence(self) -> str:
        where = f" in {self.environment}" if self.environment else ""
        if self.share is None:
            return f"{self.flag}{where} cannot be measured, so it counts as above the limit."
        return f"{self.flag}{where} changes for {self.share:.1%} of those who meet its conditions."


def compare_sides(
    before: Side,
    after: Side,
    *,
    now: datetime,
    environment: str = "",
    users: Sequence[Context] | None = None,
    users_name: str = "",
    at_most: float | None = None,
) -> tuple[Document, list[Above]]:
    """The answer of a plan of flags as code, with no request, and the flags above ``at_most`` percent.

    ``users``: the counted ones; default: generated users. Raises ValidationError for an unknown ``environment``.
    """
    shared = _match_environments(before, after, environment)
    incomparable = before.incomparable | after.incomparable
    names = sorted((before.flags.keys() | after.flags.keys()) - incomparable.keys())
    listed = sorted({name for side in (before, after) for name in _list_segments(side)})
    ids = {name: number for number, name in enumerate(listed, 1)}
    lines = list(_list_changes(before, after, incomparable))
    measured: list[Document] = []
    above: list[Above] = []
    for place in shared:
        chosen = [name for name in names if _is_in(before, name, place) and _is_in(after, name, place)]
        pair = narrow(*(make_definitions(side, place, ids, chosen) for side in (before, after)))
        contexts = Contexts(users, users_name) if users is not None else None
        who = compare_definitions(place, *pair, now=now, users=contexts)
        if not who.names:
            continue
        place_names = {"project": "", "environment": place, "people": who.contexts.people}
        measured.append(
            describe_users(who, *pair) | place_names | {"savedContexts": [], "brokenExpectations": 0}
        )
        if at_most is not None:
            above += _find_above(who, place, *pair, at_most / 100)
    unlisted = sorted(name for side in (before, after) for name in _list_unknown_segments(side))
    notes = [
        *dict.fromkeys(incomparable.values()),
        *(
            f"Segment {name} has no conditions in the files: half of the users meet it."
            for name in dict.fromkeys(unlisted)
        ),
    ]
    answer = {"changes": lines, "changeRequests": [], "whoChanges": measured, "notes": notes}
    return answer, above


def _match_environments(before: Side, after: Side, environment: str) -> list[str]:
    """The compared environments. A file that names none is in the other side's only one, or in ``environment``."""
    for side, other in ((before, after), (after, before)):
        if UNNAMED in side.environments:
            named = {environment} if environment else other.environments - {UNNAMED}
            if len(named) == 1:
                side.rename(UNNAMED, min(named))
            elif named:
                raise errors.ValidationError.at("environment", f"choose one of {choices(named)}")
    known = before.environments | after.environments
    if environment and known and environment not in known:
        message = f"{environment} is not an environment of the files. Available: {choices(known)}"
        raise errors.ValidationError.at("environment", message)
    return sorted({environment} if environment else known)


def _is_in(side: Side, name: str, environment: str) -> bool:
    """Whether the comparison may use the flag: a file that leaves out one of its environments says nothing there."""
    flag = side.flags.get(name)
    return flag is None or environment in flag["environments"]


def _list_segments(side: Side) -> Iterator[str]:
    yield from side.segments
    for flag in side.flags.values():
        for state in flag["environments"].values():
            for strategy in state.get("strategies", ()):
                yield from strategy.get("segments", ())


def _list_unknown_segments(side: Side) -> set[str]:
    bare = {
        name
        for name, listed in side.segments.items()
        if any(each["contextName"] == f"segment {name}" for each in listed)
    }
    return bare | (set(_list_segments(side)) - side.segments.keys())


def _find_above(
    who: WhoChanges, environment: str, before: Definitions, after: Definitions, limit: float
) -> Iterator[Above]:
    unmeasured = {each.flag for each in find_unmeasured(who, before, after) if each.may_be_on}
    for flag in who.flags:
        users, affected = find_most_affected(who, before, after, flag=flag.name)
        share = affected / max(1, users)
        if share > limit:
            yield Above(flag.name, environment, share)
        elif flag.name in unmeasured:
            yield Above(flag.name, environment, None)


# Differences -------------------------------------------------------------------------------------------------


def _list_changes(before: Side, after: Side, incomparable: Mapping[str, str]) -> Iterator[Document]:
    for kind, old, new in (("segment", before.segments, after.segments), ("flag", before.flags, after.flags)):
        for name in sorted((old.keys() | new.keys()) - incomparable.keys()):
            line = {"kind": kind, "name": name}
            if name not in old:
                yield line | {"action": "create"}
            elif name not in new:
                yield line | {"action": "archive"}
            elif parts := list(_list_differences("", _tidy(old[name]), _tidy(new[name]))):
                yield line | {"action": "change", "changes": parts[:MAX_PARTS]}


def _tidy(value: Any) -> Any:
    """Without empty members, and members that decide nothing."""
    if isinstance(value, Mapping):
        tidied = {
            key: _tidy(item) for key, item in value.items() if key not in ("id", "sortOrder", "featureName")
        }
        return {
            key: item
            for key, item in tidied.items()
            if item not in (None, "", False, [], {}) or key == "enabled"
        }
    return [_tidy(item) for item in value] if isinstance(value, list | tuple) else value


def _list_differences(path: str, old: Any, new: Any) -> Iterator[Document]:
    """The places that differ, as deep as both have the same members or as many items."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            inner = ".".join(filter(None, (path, key)))
            yield from _list_differences(inner, old.get(key), new.get(key))
    elif (
        isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(old[0], dict)
    ):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _list_differences(f"{path}[{index}]", *pair)
    else:
        yield {"part": path, "before": _format(old), "after": _format(new)}


def _format(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
