"""The versions of a flag: its state in all environments after one of its audit events, or at a moment.

A version is a document in the form of deletion events: the flag's own fields, ``dependencies`` (its parents) and
``environments``, a list of ``name enabled variants strategies``. It has no tags and links.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from projects.history.definitions_at import check_known, just_before
from projects.history.timeline import PRESENT, read_timeline
from projects.models import Flag
from projects.states import NOTHING, FlagState

_MEMBERS = (
    "name", "project", "createdAt", "stale", "impressionData", "archived", "dependencies", "description", "type",
    "owner",
)  # fmt: skip


def read_present_version(flag: Flag) -> FlagState:
    """The stored flag. One query."""
    state = read_timeline([flag.name], since=PRESENT).read_state(flag.name, PRESENT)
    assert state is not None
    return state


def make_seen_version(document: Mapping[str, Any], environments: Iterable[str]) -> Document:
    """The parts that a flag's version shares with its `GET`, which shows its project's environments."""
    places = {place["name"]: place for place in document["environments"]}
    return {
        **{member: document.get(member) for member in _MEMBERS},
        "environments": [
            {"name": name} | {key: places.get(name, NOTHING)[key] for key in NOTHING}
            for name in sorted(environments)
        ],
    }


def read_version(flag: Flag, at: datetime) -> FlagState | None:
    """The flag at a moment; None if it did not exist. One query. Raises Conflict if it is unknown."""
    timeline = read_timeline([flag.name], since=at)
    check_known(at, timeline.since)
    return timeline.read_state(flag.name, at, flag_id=flag.pk)


class Versions(NamedTuple):
    """The flag now, after a change, and before it. None if it did not exist."""

    now: FlagState
    after: FlagState | None
    before: FlagState | None


def find_versions_around(flag: Flag, first: datetime, last: datetime) -> Versions:
    """``first`` and ``last`` are the times of the change's events. One query. Raises Conflict if it is unknown."""
    timeline = read_timeline([flag.name], since=just_before(first))
    check_known(just_before(first), timeline.since)
    now = timeline.read_state(flag.name, PRESENT)
    assert now is not None
    after, before = (timeline.read_state(flag.name, at, flag_id=flag.pk) for at in (last, just_before(first)))
    return Versions(now, after, before)
