"""Counts the flags and projects that use each segment and each context field."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import orjson

from flagadmin.core.byte_cache import ByteCache
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.db.transactions import consistent_reads
from groups.access import Caller
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.revision import read_revisions

# The context fields that built-in strategies read without naming them.
BUILT_IN_FIELDS = {
    kind.name: field
    for kind in STRATEGY_TYPES.values()
    if (field := kind.field or kind.stickiness) not in ("", "random")
}

# Stored JSON may have unexpected types: anything but lists of objects is ignored.
_LIST = "CASE WHEN jsonb_typeof({0}) = 'array' THEN {0} ELSE '[]' END"
_FLAG = "projects_flag f ON f.id = {0}.flag_id AND f.archived_at IS NULL"
# The fields that a strategy names itself, from its columns name, parameters, constraints and variants; some twice, as
# sorting those of each strategy takes as long as everything else.
_OF_STRATEGY = f"""
    SELECT c ->> 'contextName' FROM jsonb_array_elements({_LIST.format("s.constraints")}) c
     WHERE jsonb_typeof(c) = 'object'
     UNION ALL SELECT v ->> 'stickiness' FROM jsonb_array_elements({_LIST.format("s.variants")}) v
     WHERE jsonb_typeof(v) = 'object'
     UNION ALL SELECT s.parameters ->> 'stickiness' WHERE jsonb_typeof(s.parameters) = 'object'
     UNION ALL SELECT %(built_in)s::jsonb ->> s.name
"""  # noqa: S608 - our own text
_DEFAULTS = """
    SELECT e.project_id, d ->> 'name' AS name, d -> 'parameters' AS parameters, d -> 'constraints' AS constraints,
           d -> 'variants' AS variants, d -> 'segments' AS segments
      FROM (SELECT project_id, default_strategy AS d FROM projects_projectenvironment) e
     WHERE jsonb_typeof(d) = 'object'
"""
_LINKS_OF_FLAGS = f"""
    SELECT l.segment_id, f.id AS flag_id, f.project_id
      FROM projects_strategysegment l
      JOIN projects_strategy s ON s.id = l.strategy_id JOIN {_FLAG.format("s")}
"""  # noqa: S608 - our own text
_LINKS_OF_DEFAULTS = f"""
    SELECT (i #>> '{{}}')::bigint AS segment_id, NULL::bigint AS flag_id, s.project_id
      FROM ({_DEFAULTS}) s CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.segments")}) i
     WHERE jsonb_typeof(i) = 'number'
"""  # noqa: S608 - our own text
_IN_SEGMENTS = f"""
    SELECT c ->> 'contextName' AS name, l.flag_id, l.project_id
      FROM (%s) l JOIN projects_segment s ON s.id = l.segment_id
     CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.constraints")}) c WHERE jsonb_typeof(c) = 'object'
"""  # noqa: S608 - our own text
# The fields that active flags use change with the revisions of their projects only.
_FIELDS_OF_FLAGS = f"""
    SELECT field AS name, f.id AS flag_id, f.project_id
      FROM projects_strategy s JOIN {_FLAG.format("s")} CROSS JOIN LATERAL ({_OF_STRATEGY}) n (field)
     UNION ALL
    SELECT v ->> 'stickiness', f.id, f.project_id
      FROM projects_flagenvironment s JOIN {_FLAG.format("s")}
     CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.variants")}) v WHERE jsonb_typeof(v) = 'object'
     UNION ALL {_IN_SEGMENTS % _LINKS_OF_FLAGS}
"""  # noqa: S608 - our own text
# SELECT DISTINCT hashes the rows; count(DISTINCT) would sort them, which takes a third longer.
_COUNT_FIELDS = f"""
    SELECT project_id, name, count(*) FROM (
        SELECT DISTINCT project_id, name, flag_id FROM ({_FIELDS_OF_FLAGS}) used
         WHERE name IS NOT NULL AND project_id = ANY(%(projects)s)
    ) uses GROUP BY 1, 2
"""  # noqa: S608 - our own text
_FIELDS_OF_PROJECTS = f"""
    SELECT name, project_id FROM (
        SELECT field AS name, s.project_id FROM ({_DEFAULTS}) s CROSS JOIN LATERAL ({_OF_STRATEGY}) n (field)
         UNION SELECT name, project_id FROM ({_IN_SEGMENTS % _LINKS_OF_DEFAULTS}) linked
         UNION SELECT default_stickiness, id FROM projects_project
    ) used WHERE name IS NOT NULL AND project_id = ANY(%(projects)s)
"""  # noqa: S608 - our own text
_COUNT_SEGMENTS = f"""
    SELECT segment_id, count(DISTINCT flag_id), count(DISTINCT project_id)
      FROM ({_LINKS_OF_FLAGS} UNION ALL {_LINKS_OF_DEFAULTS}) used
     WHERE %(projects)s::text[] IS NULL OR project_id = ANY(%(projects)s) GROUP BY 1
"""  # noqa: S608 - our own text
Usage = dict[Any, dict[str, int]]
UNUSED = {"usedInFeatures": 0, "usedInProjects": 0}


@dataclass(frozen=True, slots=True)
class FieldCounts:
    """The number of active flags of a project that use each context field, by its name, at a revision."""

    revision: int
    flags: Mapping[str, int]

    @property
    def nbytes(self) -> int:
        return sum(150 + len(name) for name in self.flags)  # with their places in the dictionary


cache: ByteCache[str, FieldCounts] = ByteCache()
"""Counts by project, since counting reads every strategy: a second for 100,000 flags."""
CACHE_BYTES = 16_000_000
_counting = Lock()


def count_context_field_usage(caller: Caller) -> Usage:
    """Counts by field name, of active flags and projects that the caller may read.

    Flags of projects that are as they were are not counted again. At most three SQL statements.
    """
    flags: Counter[str] = Counter()
    projects: dict[str, set[str]] = defaultdict(set)
    allowed = caller.readable_projects
    with _counting, consistent_reads():
        current = read_revisions(allowed)
        for project, counts in _count_fields(current).items():
            flags.update(counts.flags)
            for name in counts.flags:
                projects[name].add(project)
        for name, project in _read_rows(_FIELDS_OF_PROJECTS, current):
            projects[name].add(project)
    return {
        name: {"usedInFeatures": flags[name], "usedInProjects": len(using)}
        for name, using in projects.items()
    }


def count_ahead() -> None:
    """Counts the uses of context fields in all projects before anybody asks. Two SQL statements."""
    with _counting, consistent_reads():
        _count_fields(read_revisions())


def _count_fields(current: Mapping[str, int]) -> dict[str, FieldCounts]:
    known = {project: cache.get(project) for project in current}
    counts_by_project = {
        project: counts
        for project, counts in known.items()
        if counts is not None and counts.revision == current[project]
    }
    by_project: dict[str, dict[str, int]] = {
        project: {} for project in current if project not in counts_by_project
    }
    if by_project:
        for project, name, count in _read_rows(_COUNT_FIELDS, by_project):
            by_project[project][name] = count
    for project, flags in by_project.items():
        counts_by_project[project] = FieldCounts(current[project], flags)
        cache.put(project, counts_by_project[project], limit=CACHE_BYTES)
    return counts_by_project


def count_segment_usage(caller: Caller) -> Usage:
    """Counts by segment id, of active flags and projects that the caller may read. One SQL statement."""
    rows = _read_rows(_COUNT_SEGMENTS, caller.readable_projects)
    return {key: {"usedInFeatures": flags, "usedInProjects": projects} for key, flags, projects in rows}


def _read_rows(statement: str, projects: Iterable[str] | None) -> list[tuple[Any, ...]]:
    parameters = {
        "projects": None if projects is None else sorted(projects),
        "built_in": orjson.dumps(BUILT_IN_FIELDS).decode(),
    }
    return fetch_rows(statement, parameters)
