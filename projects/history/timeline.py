"""All versions of a few flags, with their parents and segments: every state that they have had, read by one query."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.http.responses import iso
from playground.engine.definitions import DependencyDefinition, FlagDefinition, SegmentDefinition
from projects.definitions import Definitions, find_parents
from projects.models.versions import BEGINNING, NEVER
from projects.states import NOTHING, EnvironmentState, FlagState, in_order, with_environments
from projects.strategies.fields import FIELDS

PRESENT = NEVER - timedelta(microseconds=1)
"""A moment after all changes, including those of the current transaction."""

# Each table is read by ids in an array, because PostgreSQL then uses the index even without statistics.
_VALID = "valid_to > %(since)s AND valid_from <= %(until)s"
_ROWS = f"""
WITH named AS (SELECT DISTINCT id FROM projects_flagversion WHERE name = ANY(%(names)s)),
     flags AS (SELECT id FROM named UNION
               SELECT parent_id FROM projects_dependencyversion
                WHERE flag_id = ANY(ARRAY(SELECT id FROM named)) AND {_VALID}),
     flag AS (SELECT v.*, u.username AS owner_user, g.name AS owner_group FROM projects_flagversion v
                LEFT JOIN groups_user u ON u.id = v.owner_user_id LEFT JOIN groups_group g ON g.id = v.owner_group_id
               WHERE v.id = ANY(ARRAY(SELECT id FROM flags))),
     strategy AS (SELECT * FROM projects_strategyversion
                   WHERE flag_id = ANY(ARRAY(SELECT id FROM flags)) AND {_VALID}
                     AND (environment_id = %(environment)s OR %(environment)s::text IS NULL)),
     link AS (SELECT * FROM projects_strategysegmentversion
               WHERE strategy_id = ANY(ARRAY(SELECT DISTINCT id FROM strategy)) AND {_VALID})
SELECT 'flag', valid_from, valid_to, to_jsonb(flag) FROM flag WHERE {_VALID}
UNION ALL
SELECT 'state', valid_from, valid_to, to_jsonb(v) FROM projects_flagenvironmentversion v
 WHERE flag_id = ANY(ARRAY(SELECT id FROM flags)) AND {_VALID}
   AND (environment_id = %(environment)s OR %(environment)s::text IS NULL)
UNION ALL
SELECT 'strategy', valid_from, valid_to, to_jsonb(strategy) FROM strategy
UNION ALL
SELECT 'link', valid_from, valid_to, to_jsonb(link) FROM link
UNION ALL
SELECT 'parent', valid_from, valid_to, to_jsonb(v) || jsonb_build_object(
       'parent', (SELECT name FROM projects_flagversion p WHERE p.id = v.parent_id LIMIT 1))
  FROM projects_dependencyversion v WHERE flag_id = ANY(ARRAY(SELECT id FROM flags)) AND {_VALID}
UNION ALL
SELECT 'segment', valid_from, valid_to, to_jsonb(v) FROM projects_segmentversion v
 WHERE id = ANY(ARRAY(SELECT DISTINCT segment_id FROM link)) AND {_VALID}
UNION ALL
SELECT 'since', since, since, '{{}}' FROM projects_versionssince
 ORDER BY 3
"""  # noqa: S608 - a constant of our own
_OWNERS = {
    "flag": "name",
    "state": "flag_id",
    "strategy": "flag_id",
    "link": "strategy_id",
    "parent": "flag_id",
    "segment": "id",
}
"""The column by which each table's rows are looked up."""


class _Row(NamedTuple):
    start: datetime
    end: datetime
    values: dict[str, Any]


class _Rows:
    """The versions of one row, in order."""

    __slots__ = ("ends", "listed")

    def __init__(self) -> None:
        self.listed: list[_Row] = []
        self.ends: list[datetime] = []

    def find(self, at: datetime) -> dict[str, Any] | None:
        """The values that were valid at a moment."""
        place = bisect_right(self.ends, at)
        if place < len(self.listed) and self.listed[place].start <= at:
            return self.listed[place].values
        return None


class Timeline:
    """The states of flags and of their parents. ``since``: from when versions are complete."""

    def __init__(self, names: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
        self.asked = list(names)
        self.since = BEGINNING
        # The versions of each row, by its table, then by the flag or strategy that it belongs to.
        self._rows: dict[str, dict[Any, dict[Any, _Rows]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(_Rows))
        )
        for kind, start, end, document in rows:
            if kind == "since":
                self.since = start
                continue
            values = orjson.loads(document)
            versions = self._rows[kind][values[_OWNERS[kind]]][values["id"]]
            versions.listed.append(_Row(start, end, values))
            versions.ends.append(end)

    @property
    def names(self) -> list[str]:
        """The flags that were asked for, then all others."""
        return list(dict.fromkeys([*self.asked, *sorted(self._rows["flag"])]))

    def knows(self, at: datetime) -> bool:
        """Whether versions reach back to this moment."""
        return at >= self.since

    def list_moments(self) -> list[datetime]:
        """When anything here may have changed, in order. The first may be ``since``."""
        tables = (owner.values() for table in self._rows.values() for owner in table.values())
        rows = (row for table in tables for versions in table for row in versions.listed)
        moments = {moment for row in rows for moment in (row.start, row.end)}
        known = {max(moment, self.since) for moment in moments if moment < NEVER}
        return sorted(known if self.since == BEGINNING else known | {self.since})

    def _valid(self, kind: str, owner: Any, at: datetime) -> list[dict[str, Any]]:
        rows = self._rows[kind].get(owner, {})
        return [values for versions in rows.values() if (values := versions.find(at)) is not None]

    def _find(self, name: str, at: datetime) -> Mapping[str, Any] | None:
        return next(iter(self._valid("flag", name, at)), None)

    def _read_parents(self, flag: int, at: datetime) -> list[DependencyDefinition]:
        rows = sorted(self._valid("parent", flag, at), key=itemgetter("id"))  # their ids are their order
        return [
            {"feature": row["parent"], "enabled": row["enabled"], "variants": row["variants"]} for row in rows
        ]

    def _read_places(self, flag: int, at: datetime) -> dict[str, EnvironmentState]:
        places: dict[str, EnvironmentState] = {
            row["environment_id"]: {"enabled": row["enabled"], "variants": row["variants"], "strategies": []}
            for row in self._valid("state", flag, at)
        }
        for row in self._valid("strategy", flag, at):
            links = sorted(self._valid("link", row["id"], at), key=itemgetter("id"))
            segments = [link["segment_id"] for link in links]
            members: Any = {field.member: row[field.column] for field in FIELDS}
            place = places.setdefault(row["environment_id"], {**NOTHING, "strategies": []})
            place["strategies"].append(members | {"id": row["id"], "segments": segments})
        for place in places.values():
            place["strategies"] = in_order(place["strategies"])
        return places

    def read_state(self, name: str, at: datetime, *, flag_id: int | None = None) -> FlagState | None:
        """The flag in all environments that have been read; None if it did not exist, or had another id."""
        flag = self._find(name, at)
        if flag is None or flag_id not in (None, flag["id"]):
            return None
        metadata: Any = {
            "name": name,
            "description": flag["description"],
            "type": flag["type"],
            "project": flag["project_id"],
            "stale": flag["stale"],
            "createdAt": iso(datetime.fromisoformat(flag["created_at"])),
            "impressionData": flag["impression_data"],
            "archived": flag["archived_at"] is not None,
            "owner": _make_owner(flag),
            "dependencies": self._read_parents(flag["id"], at),
        }
        if flag["archived_at"] is not None:
            metadata["archivedAt"] = iso(datetime.fromisoformat(flag["archived_at"]))
        return with_environments(metadata, self._read_places(flag["id"], at))

    def read_definitions(self, names: Iterable[str], environment: str, at: datetime) -> Definitions:
        """These flags and their parents in an environment, as far as they were active."""
        flags = list(self._read_active(set(names), environment, at))
        flags += self._read_active(find_parents(flags) - {flag["name"] for flag in flags}, environment, at)
        segments: dict[int, SegmentDefinition] = {
            row["id"]: {"id": row["id"], "name": row["name"], "constraints": row["constraints"]}
            for key in self._rows["segment"]
            for row in self._valid("segment", key, at)
        }
        return Definitions.of(sorted(flags, key=lambda flag: flag["name"]), segments)

    def _read_active(self, names: Iterable[str], environment: str, at: datetime) -> Iterator[FlagDefinition]:
        for name in names:
            flag = self._find(name, at)
            if flag is not None and flag["archived_at"] is None:
                yield {
                    "name": name,
                    "project": flag["project_id"],
                    "impression_data": flag["impression_data"],
                    "stale": flag["stale"],
                    **self._read_places(flag["id"], at).get(environment, NOTHING),
                    "dependencies": self._read_parents(flag["id"], at),
                }


def _make_owner(flag: Mapping[str, Any]) -> Any:
    for kind in ("user", "group"):
        if flag[f"owner_{kind}"] is not None:
            return {"kind": kind, "id": flag[f"owner_{kind}_id"], "name": flag[f"owner_{kind}"]}
    return None


def read_timeline(
    names: Iterable[str],
    *,
    environment: str | None = None,
    since: datetime = BEGINNING,
    until: datetime = PRESENT,
) -> Timeline:
    """The versions of these flags that were valid at the moment ``since`` or later, until ``until``. One query.

    ``environment`` None: in all environments.
    """
    values: dict[str, Any] = {
        "names": list(names),
        "environment": environment,
        "since": since,
        "until": until,
    }
    return Timeline(values["names"], fetch_rows(_ROWS, values))


_INSIDE = """((valid_from > %(since)s AND valid_from <= %(until)s)
     OR (valid_to > %(since)s AND valid_to <= %(until)s))"""
_CHANGED = f"""
WITH flags AS (
       SELECT id AS flag_id FROM projects_flagversion WHERE {_INSIDE}
        UNION SELECT flag_id FROM projects_flagenvironmentversion WHERE environment_id = %(environment)s AND {_INSIDE}
        UNION SELECT flag_id FROM projects_dependencyversion WHERE {_INSIDE}
        UNION SELECT flag_id FROM projects_strategyversion WHERE environment_id = %(environment)s AND ({_INSIDE}
           OR id IN (SELECT strategy_id FROM projects_strategysegmentversion WHERE {_INSIDE}
                        OR segment_id IN (SELECT id FROM projects_segmentversion WHERE {_INSIDE})))),
     family AS (SELECT flag_id FROM flags UNION
                SELECT flag_id FROM projects_dependencyversion WHERE parent_id IN (SELECT flag_id FROM flags))
SELECT DISTINCT name FROM projects_flagversion
 WHERE project_id = ANY(%(projects)s) AND id IN (SELECT flag_id FROM family) ORDER BY name
"""  # noqa: S608 - constants of our own


def list_changed(projects: Iterable[str], environment: str, since: datetime, until: datetime) -> list[str]:
    """The flags of these projects that may have changed there after ``since`` and until ``until``, and their children.

    One query.
    """
    values = {"projects": sorted(projects), "environment": environment, "since": since, "until": until}
    return [name for (name,) in fetch_rows(_CHANGED, values)]
