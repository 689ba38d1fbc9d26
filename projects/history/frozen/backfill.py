"""Makes versions of states before versions were kept, by reverting audit events.

Versions with an unknown start are valid from the BEGINNING of time. Together they are the state before the oldest
reverted event, so this needs no memory of its own: after an interruption, it continues from there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from random import Random
from typing import Any
from uuid import UUID, uuid5

import orjson
from django.db import connection

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.events import EventType as E
from flagadmin.core.db.statements import execute, fetch_row, fetch_rows
from flagadmin.core.db.transactions import consistent_reads, run_with_retries
from playground.engine.definitions import DependencyDefinition
from projects.definitions import (
    Definitions,
    find_used_segments,
    read_all_definitions,
    read_definitions,
    read_segments,
)
from projects.history.definitions_at import Changed, read_since
from projects.history.frozen.rewind import IN_ONE_ENVIRONMENT, TYPES, Back, PastEvent
from projects.models.versions import BEGINNING, VersionsSince
from projects.strategies.fields import COLUMNS, to_row

# A flag that left a project has its later events in others. Segments of other projects may have been global. If a flag
# was created since, all later events are irrelevant: it only matters that it has changed. Of successive edits of one
# strategy, the oldest has the state before all of them, and the others are not read.
_EVENTS_OF_FLAGS = """
SELECT creation IS NOT NULL, id > creation, type, environment, feature,
       CASE WHEN id > creation THEN NULL ELSE before END,
       CASE WHEN id >= creation THEN NULL ELSE after END,
       CASE WHEN id > creation THEN NULL ELSE earlier END
  FROM (SELECT e.*, c.id AS creation,
               e.type = %(edit)s AND (e.type, e.environment, e.before->>'id')
                 = lead((e.type, e.environment, e.before->>'id')) OVER (PARTITION BY e.feature ORDER BY e.id DESC)
                 AS is_edited_before
          FROM audit_auditevent e
          LEFT JOIN (SELECT feature, min(id) AS id FROM audit_auditevent
                      WHERE created_at > %(at)s AND type = %(created)s GROUP BY feature) c ON c.feature = e.feature
         WHERE e.created_at > %(at)s AND e.type = ANY(%(types)s)
           AND (e.environment = %(environment)s OR e.environment IS NULL OR e.type <> ALL(%(in_one)s))
           AND (e.project = ANY(%(projects)s) OR e.type = ANY(%(anywhere)s)
                OR e.feature IN (SELECT m.feature FROM audit_auditevent m
                                  WHERE m.created_at > %(at)s AND m.type = 'feature-project-change'
                                    AND m.before->>'project' = ANY(%(projects)s)))) events
 WHERE is_edited_before IS NOT TRUE
 ORDER BY id DESC
"""
_ANYWHERE = [
    EventType.SEGMENT_UPDATED.value,
    EventType.SEGMENT_DELETED.value,
    EventType.PROJECT_DELETED.value,
    EventType.ENVIRONMENT_DELETED.value,
]


def rewind_changed(projects: list[str], environment: str, at: datetime) -> Changed:
    """Reads the changes. Seven statements, which need one transaction."""
    read = _read(projects, environment, at)
    existing = read.names - read.created
    back = Back(environment, read_all_definitions(environment, existing).flags if existing else ())
    for event in read.events:
        back.undo(event)
    flags = back.active(projects)
    with connection.cursor() as cursor:
        stored = read_segments(cursor, find_used_segments(flags) - back.segments.keys())
    return Changed(frozenset(read.names), flags, stored | back.segments, frozenset(back.segments))


@dataclass(frozen=True, slots=True)
class _Read:
    """The ``events`` to revert, the ``names`` of all changed flags, and the ``created`` ones among them.

    The present state of created flags does not matter. An earlier flag with the name is restored from its deletion
    event.
    """

    events: list[PastEvent] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)


def _read(projects: list[str], environment: str, at: datetime) -> _Read:
    read = _Read()
    values = {
        "at": at,
        "types": TYPES,
        "environment": environment,
        "in_one": IN_ONE_ENVIRONMENT,
        "projects": projects,
        "anywhere": _ANYWHERE,
        "created": EventType.FEATURE_CREATED.value,
        "edit": EventType.FEATURE_STRATEGY_UPDATE.value,
    }
    for is_creation, is_superseded, kind, place, feature, *documents in fetch_rows(_EVENTS_OF_FLAGS, values):
        if feature is not None:
            read.names.add(feature)
        if is_creation:
            read.created.add(feature)
        if not is_superseded:
            event = PastEvent.of_row(kind, place, feature, *documents)
            read.events.append(event)
            if event.earlier is not None:
                read.names.update(event.earlier.get("children") or ())
                read.names.update(event.earlier.get("flags") or ())
    return read


CHUNK = 1_000
"""Events reverted in one transaction, or more if a single change has more."""
_MADE_UP = UUID("6f1c0c62-5c0c-4f0e-9d55-0f3f5a3d3c11")
"""The namespace of ids of strategies that no event names."""

_CUTOFF = """
SELECT min(created_at) FROM (SELECT created_at FROM audit_auditevent WHERE type = ANY(%s) AND created_at < %s
                              ORDER BY created_at DESC LIMIT %s) AS last
"""
_EVENTS = """
SELECT created_at, type, environment, feature, before, after, earlier FROM audit_auditevent
 WHERE type = ANY(%s) AND created_at >= %s AND created_at < %s ORDER BY created_at DESC, id DESC
"""


def fill_chunk(size: int = CHUNK) -> int:
    """Reverts the next events, newest first. Returns their number: 0 if versions are complete."""
    return run_with_retries(lambda: _fill(size))


def _fill(size: int) -> int:
    reach = VersionsSince.objects.select_for_update().first()
    if reach is None or reach.since == BEGINNING or reach.since > reach.kept_since:
        return 0
    (cutoff,) = fetch_row(_CUTOFF, [TYPES, reach.since, size])
    rows = fetch_rows(_EVENTS, [TYPES, cutoff, reach.since]) if cutoff else []
    events = [(moment, PastEvent.of_row(*row)) for moment, *row in rows]
    way = _Way(event for _, event in events)
    for moment, changes in groupby(events, key=itemgetter(0)):
        way.undo((event for _, event in changes), moment)
    reach.since = cutoff or BEGINNING
    reach.save()
    return len(events)


def compare_moments(random: Random, count: int) -> list[str]:
    """Reads random moments of random projects both ways. Returns those that differ, with project and environment.

    Ignores the ids of strategies, because earlier events do not name those that an import replaced.
    """
    times = "SELECT min(created_at), max(created_at) FROM audit_auditevent WHERE type = ANY(%s)"
    first, last = fetch_row(times, [TYPES])
    first = first and max(first, read_since())
    places = (
        "SELECT DISTINCT project_id, environment_id FROM projects_projectenvironmentversion ORDER BY 1, 2"
    )
    different, known = [], fetch_rows(places)
    for _ in range(count if first and known else 0):
        moment = first + (last - first) * random.random()
        project, environment = random.choice(known)
        with consistent_reads():
            kept = read_definitions([project], environment, at=moment)
            rewound = rewind_changed([project], environment, moment)
            now = read_definitions([project], environment)
        former = rewound.applied(now)
        if _without_ids(kept) != _without_ids(former):
            different.append(f"{project} in {environment} at {moment.isoformat()}")
    return different


def _without_ids(definitions: Definitions) -> Any:
    flags = [
        flag | {"strategies": [{**strategy, "id": ""} for strategy in flag["strategies"]]}
        for flag in definitions.flags
    ]
    return flags, definitions.segments


Rows = dict[tuple[str, ...], Any]
"""The rows of a flag by identity, for comparison before and after an event is reverted."""


class _Way:
    """The flags of some events during reconstruction, in all environments of these events."""

    def __init__(self, events: Iterable[PastEvent]) -> None:
        listed = list(events)
        names = set[str]().union(*map(_find_names, listed))
        known = {name for (name,) in fetch_rows("SELECT name FROM projects_environment")}
        # All environments share the flags' own fields, so they are read without any environment.
        self.backs = {
            name: Back(name, read_all_definitions(name, names, at=BEGINNING).flags)
            for name in known.union(*map(_find_environments, listed), ("",))
        }

    def undo(self, events: Iterable[PastEvent], moment: datetime) -> None:
        """Reverts all events of a moment. Parents come last: they may have been deleted with their children."""
        children = set[str]()
        for event in events:
            _write_segments(event, moment)
            children.update(self._undo(event, moment))
        for name in sorted(children):
            if name in self.backs[""].flags:
                _write_parents(name, moment, self.backs[""].flags[name]["dependencies"])

    def _undo(self, event: PastEvent, moment: datetime) -> Iterator[str]:
        """Writes everything except parents. Yields the flags whose parents differed."""
        one = event.type in IN_ONE_ENVIRONMENT and event.type != E.ENVIRONMENT_DELETED
        backs = [self.backs[event.environment or ""]] if one else list(self.backs.values())
        names = sorted(_find_names(event))
        after = [_find_rows(name, backs) for name in names]
        for back in backs:
            back.undo(event)
        for name, rows in zip(names, after, strict=True):
            before = _find_rows(name, backs)
            _write_flag(name, event, moment, rows, before)
            if rows.get(("parents",)) != before.get(("parents",)):
                yield name


def _find_names(event: PastEvent) -> set[str]:
    """The flags that the event changes."""
    earlier = event.earlier or {}
    others = {**(earlier.get("children") or {}), **(earlier.get("flags") or {})}
    return {event.feature, *others} if event.feature else {*others}


def _find_environments(event: PastEvent) -> set[str]:
    """The environments in the event, some of which may have been deleted."""
    names = {event.environment} if event.environment else set()
    if event.type == E.ENVIRONMENT_DELETED:
        names.add(event.before["name"])
    if event.type in (E.FEATURE_DELETED, E.FEATURE_REVERTED):
        names.update(place["name"] for place in event.before["environments"])
    return names


def _find_rows(name: str, backs: Iterable[Back]) -> Rows:
    rows: Rows = {}
    for back in backs:
        flag, place = back.flags.get(name), back.environment
        if flag is None:
            continue
        if not place:
            rows["flag",] = tuple(flag[key] for key in ("project", "stale", "impression_data", "archived"))
            rows["parents",] = _dump(flag["dependencies"])
            continue
        rows["state", place] = (flag["enabled"], _dump(flag["variants"]))
        for strategy in flag["strategies"]:
            identifier = _make_id(strategy["id"], name, place)
            rows["strategy", place, identifier] = (to_row(strategy), list(strategy["segments"]))
    return rows


def _make_id(identifier: str, *place: str) -> str:
    """The id, or a new one for a strategy whose event names none."""
    try:
        return str(UUID(identifier))
    except ValueError:
        return str(uuid5(_MADE_UP, "/".join((*place, identifier))))


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


# Writing -----------------------------------------------------------------------------------------------------------


def _begin(table: str, moment: datetime, **where: Any) -> None:
    """Sets the start of versions from the BEGINNING to this moment. Deletes those that also ended now."""
    condition = " AND ".join(f"{column} = %({column})s" for column in where)
    values = {**where, "at": moment, "beginning": BEGINNING}
    condition += " AND valid_from = %(beginning)s"
    execute(f"DELETE FROM projects_{table}version WHERE {condition} AND valid_to = %(at)s", values)  # noqa: S608 - names of our own
    execute(f"UPDATE projects_{table}version SET valid_from = %(at)s WHERE {condition}", values)  # noqa: S608 - names of our own


def _end(table: str, moment: datetime, **row: Any) -> None:
    """Inserts rows that existed since the BEGINNING and ended now."""
    row |= {"valid_from": BEGINNING, "valid_to": moment}
    columns, values = ", ".join(row), ", ".join(f"%({column})s" for column in row)
    execute(f"INSERT INTO projects_{table}version ({columns}) VALUES ({values})", row)  # noqa: S608 - names of our own


def _make_keys(table: str, count: int) -> range:
    """Ids for rows that no table has any more: negative and increasing, because rows are read in order."""
    (lowest,) = fetch_row(f"SELECT least(min(id), 0) FROM projects_{table}version")  # noqa: S608 - names of our own
    return range(lowest - count, lowest)


def _write_segments(event: PastEvent, moment: datetime) -> None:
    documents = []
    if event.type in (E.SEGMENT_UPDATED, E.SEGMENT_DELETED):
        documents = [event.before]
    elif event.type == E.PROJECT_DELETED:
        documents = event.before["segments"]
    for segment in documents:
        row = {key: segment.get(key) for key in ("id", "name", "description")}
        row |= {"constraints": _dump(segment["constraints"]), "project_id": segment.get("project")}
        _begin("segment", moment, id=segment["id"])
        _end("segment", moment, **row)


_FLAG = """
SELECT id, created_at, project_id, type, description, stale, impression_data, archived_at, owner_user_id, owner_group_id
  FROM projects_flagversion WHERE name = %s AND valid_from = %s
"""
_IDS = "SELECT name, id FROM projects_flagversion WHERE name = ANY(%s) AND valid_from = %s"
_FLAG_COLUMNS = _FLAG.split("FROM")[0].replace("SELECT", "").replace(",", " ").split()


def _write_flag(name: str, event: PastEvent, moment: datetime, after: Rows, before: Rows) -> None:
    """``after`` are the rows after the event, ``before`` those before it."""
    stored = fetch_row(_FLAG, [name, BEGINNING])
    old = dict(zip(_FLAG_COLUMNS, stored, strict=True)) if stored else {}
    if ("flag",) in before:
        new = _make_flag(old, before["flag",], event if event.feature == name else None, moment)
        if new != old:
            _begin("flag", moment, name=name)
            _end("flag", moment, name=name, **new)
        flag_id = new["id"]
    elif ("flag",) in after:
        _begin("flag", moment, name=name)
        flag_id = old["id"]
    elif old:
        flag_id = old["id"]
    else:
        return
    for key in sorted(after.keys() | before.keys() - {("flag",)}):
        if key != ("flag",) and after.get(key) != before.get(key):
            _PARTS[key[0]](flag_id, key, moment, before.get(key))


def _make_flag(
    old: Mapping[str, Any], common: Sequence[Any], event: PastEvent | None, moment: datetime
) -> dict[str, Any]:
    """The flag's row before the event. An earlier archiving, and its time, is unknown."""
    said = event.before if event is not None and isinstance(event.before, dict) else {}
    new = dict(old) or {"id": _make_keys("flag", 1)[0], "created_at": said.get("createdAt") or moment}
    project, stale, impression_data, archived = common
    new |= {"project_id": project, "stale": stale, "impression_data": impression_data}
    new["archived_at"] = (old.get("archived_at") or moment) if archived else None
    new["type"] = said.get("type") or old.get("type") or "release"
    new["description"] = said.get("description", old.get("description"))
    owner = said.get("owner") or {}
    for kind in ("user", "group"):
        column = f"owner_{kind}_id"
        told = owner.get("id") if owner.get("kind") == kind else None
        new[column] = told if "owner" in said else old.get(column)
    return new


def _write_parents(name: str, moment: datetime, parents: Iterable[DependencyDefinition]) -> None:
    ids = dict(fetch_rows(_IDS, [[name, *(parent["feature"] for parent in parents)], BEGINNING]))
    known = [parent for parent in parents if parent["feature"] in ids]
    for pk, parent in zip(_make_keys("dependency", len(known)), known, strict=True):
        row = {"id": pk, "flag_id": ids[name], "parent_id": ids[parent["feature"]]}
        _end("dependency", moment, **row, enabled=parent["enabled"], variants=_dump(parent["variants"]))


def _write_state(flag_id: int, key: tuple[str, ...], moment: datetime, before: Any) -> None:
    place = {"flag_id": flag_id, "environment_id": key[1]}
    _begin("flagenvironment", moment, **place)
    if before and before != (False, "[]"):
        (pk,) = _make_keys("flagenvironment", 1)
        _end("flagenvironment", moment, id=pk, **place, enabled=before[0], variants=before[1])


def _write_strategy(flag_id: int, key: tuple[str, ...], moment: datetime, before: Any) -> None:
    _, place, identifier = key
    _begin("strategy", moment, id=identifier)
    _begin("strategysegment", moment, strategy_id=identifier)
    if before:
        values, segments = before
        row = {"id": identifier, "flag_id": flag_id, "environment_id": place}
        _end("strategy", moment, **row, **dict(zip(COLUMNS, values, strict=True)))
        for pk, segment in zip(_make_keys("strategysegment", len(segments)), segments, strict=True):
            _end("strategysegment", moment, id=pk, strategy_id=identifier, segment_id=segment)


def _begin_parents(flag_id: int, key: tuple[str, ...], moment: datetime, before: Any) -> None:
    _begin("dependency", moment, flag_id=flag_id)


_PARTS = {"parents": _begin_parents, "state": _write_state, "strategy": _write_strategy}
