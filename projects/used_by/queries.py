"""Finds and counts the uses of a segment or a context field, including those stored by apps above.

Lists the uses of a segment or a context field, with links, for its page and its delete page.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import orjson
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.urls import reverse

from flagadmin.core.caches import ByteCache
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import choices, name_flags
from flagadmin.core.hook import Hook
from flagadmin.core.lists.pages import Listing
from groups.access import Caller
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.console import flag_url, project_url
from projects.models import FlagEnvironment, Project, ProjectEnvironment, Segment, Strategy
from projects.revision import read_revisions

# The context fields that built-in strategies read implicitly.
BUILT_IN_FIELDS = {
    kind.name: field
    for kind in STRATEGY_TYPES.values()
    if (field := kind.field or kind.stickiness) not in ("", "random")
}

# Stored JSON may have unexpected types: anything but lists of objects is ignored.
_LIST = "CASE WHEN jsonb_typeof({0}) = 'array' THEN {0} ELSE '[]' END"
_FLAG = "projects_flag f ON f.id = {0}.flag_id AND f.archived_at IS NULL"
# The fields that a strategy names itself, from its columns name, parameters, constraints and variants; some twice,
# because sorting those of each strategy takes as long as everything else.
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
# The fields used by active flags change only with the revisions of their projects.
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
        return sum(150 + len(name) for name in self.flags)  # with their entries in the dictionary


cache: ByteCache[str, FieldCounts] = ByteCache()
"""Counts by project, cached because counting reads every strategy: a second for 100,000 flags."""
CACHE_BYTES = 16_000_000
_counting = Lock()


def count_context_field_usage(caller: Caller) -> Usage:
    """Counts by field name, of active flags and projects that the caller may read.

    Does not recount flags of unchanged projects. At most three SQL statements.
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
    """Counts the uses of context fields in all projects ahead of requests. Two SQL statements."""
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


class PlannedUse(NamedTuple):
    """The object with such a strategy, in ``words``, and its project; None for all projects."""

    project: str | None
    words: str


find_planned: Hook[[Mapping[str, Any]], list[PlannedUse]] = Hook(
    "projects.used_by.queries.find_planned", lambda members: []
)
"""Finds planned strategies with these members: ``{"segments": [3]}``, ``{"name": "betaUsers"}``. It only reads."""

find_segments_ahead: Hook[[int], set[int]] = Hook(
    "projects.used_by.queries.find_segments_ahead", lambda flag_id: set()
)
"""The segments of strategies that the flag gets later. It only reads."""


Uses = dict[str, list[Document]]


HIDDEN_PLACE = "in a project that you cannot see"


def describe_uses(
    strategies: QuerySet[Strategy],
    defaults: QuerySet[ProjectEnvironment],
    planned: Sequence[PlannedUse] = (),
    *,
    caller: Caller | None,
) -> str:
    """``on 2 flags: cart, search, and in the default strategy of shop in production``; empty if unused.

    Names nothing of projects that the caller may not read. None may read all.
    """
    caller = caller or Caller.system()
    uses = set(strategies.values_list("flag__name", "flag__project_id"))
    places = list(defaults.values_list("project_id", "environment_id"))
    flags = {name for name, project in uses if caller.can_read(project)}
    readable = [f"{project} in {name}" for project, name in places if caller.can_read(project)]
    words = [use.words for use in planned if use.project is None or caller.can_read(use.project)]
    parts = [f"on {name_flags(flags)}"] if flags else []
    parts += [f"in the default strategy of {choices(readable)}"] if readable else []
    parts += [choices(words)] if words else []
    named = len(flags) + len(readable) + len(words)
    parts += [HIDDEN_PLACE] if named < len(uses) + len(places) + len(planned) else []
    return ", and ".join(parts)


def find_default_strategies(segment_id: int) -> QuerySet[ProjectEnvironment]:
    return ProjectEnvironment.objects.filter(default_strategy__segments__contains=[segment_id])


def list_segment_uses(segment_id: int, caller: Caller) -> Uses:
    """The uses of the segment that the caller may read: ``strategies`` of active flags, ``defaultStrategies``."""
    return {
        "strategies": _list_strategies(Strategy.objects.filter(segments=segment_id), caller),
        "defaultStrategies": _list_default_strategies(find_default_strategies(segment_id), caller),
    }


def list_context_field_uses(name: str, caller: Caller) -> Uses:
    """The uses of the field that the caller may read: ``strategies`` and ``variants`` of active flags,
    ``defaultStrategies``, ``segments``, and ``projects`` that have it as default stickiness.
    """
    segments = Segment.objects.filter(constraints__contains=[{"contextName": name}]).order_by("name")
    ids = list(segments.values_list("pk", flat=True))
    through = Q()
    for pk in ids:
        through |= Q(default_strategy__segments__contains=[pk])
    return {
        "strategies": _list_strategies(
            Strategy.objects.filter(_match_readers(name) | Q(segments__in=ids)).distinct(), caller
        ),
        "variants": _list_variants(name, caller),
        "defaultStrategies": _list_default_strategies(
            ProjectEnvironment.objects.filter(_match_readers(name, "default_strategy__") | through), caller
        ),
        "segments": [{"id": segment.pk, "name": segment.name} for segment in segments.readable_by(caller)],
        "projects": [
            {"id": project.pk}
            for project in _filter_readable(
                Project.objects.filter(default_stickiness=name), caller, field="pk"
            )
        ],
    }


def _match_readers(name: str, of: str = "") -> Q:
    """Matches strategies that name the field or whose type reads it.

    ``of`` is the strategy's lookup prefix.
    """
    types = [kind for kind, field in BUILT_IN_FIELDS.items() if field == name]
    return (
        Q(**{f"{of}constraints__contains": [{"contextName": name}]})
        | Q(**{f"{of}parameters__stickiness": name})
        | Q(**{f"{of}variants__contains": [{"stickiness": name}]})
        | Q(**{f"{of}name__in": types})
    )


def _list_strategies(strategies: QuerySet[Strategy], caller: Caller) -> list[Document]:
    """Strategies of active flags in projects the caller may read, sorted by project, flag and environment."""
    rows = _filter_readable(strategies, caller, field="flag__project_id").filter(flag__archived_at=None)
    rows = rows.order_by("flag__project_id", "flag__name", "environment_id", "sort_order", "id")
    columns = ("id", "projectId", "featureName", "strategyName", "environment")
    # As text from the database: converting a hundred thousand UUIDs takes longer than everything else.
    fields = (Cast("id", TextField()), "flag__project_id", "flag__name", "name", "environment_id")
    return [dict(zip(columns, row, strict=True)) for row in rows.values_list(*fields)]


def _list_variants(name: str, caller: Caller) -> list[Document]:
    rows = FlagEnvironment.objects.filter(variants__contains=[{"stickiness": name}], flag__archived_at=None)
    rows = _filter_readable(rows, caller, field="flag__project_id")
    rows = rows.order_by("flag__project_id", "flag__name", "environment_id")
    return [
        {"projectId": project, "featureName": flag, "environment": environment}
        for project, flag, environment in rows.values_list("flag__project_id", "flag__name", "environment_id")
    ]


def _list_default_strategies(links: QuerySet[ProjectEnvironment], caller: Caller) -> list[Document]:
    rows = _filter_readable(links, caller).order_by("project_id", "environment_id")
    return [
        {"projectId": project, "environment": environment}
        for project, environment in rows.values_list("project_id", "environment_id")
    ]


def _filter_readable(rows: QuerySet[Any], caller: Caller, *, field: str = "project_id") -> QuerySet[Any]:
    """Rows of projects that the caller may read. ``field`` is the lookup of the project id."""
    return rows.filter(caller.match_readable(field))


class UseLine(NamedTuple):
    """A list item: ``name``, which links to ``url``, followed by ``where``."""

    name: str
    where: str
    page: Callable[..., str]
    arguments: tuple[Any, ...]

    @property
    def url(self) -> str:
        """Created only for visible lines, because there may be a hundred thousand."""
        return self.page(*self.arguments)


def use_lines(uses: Uses) -> list[UseLine]:
    return [
        *_make_strategies_line(uses["strategies"]),
        *(_make_flag_line(use, f"variants in {use['environment']}") for use in uses.get("variants", ())),
        *(
            _make_project_line(use["projectId"], f"default strategy in {use['environment']}")
            for use in uses["defaultStrategies"]
        ),
        *(_make_project_line(use["id"], "default stickiness") for use in uses.get("projects", ())),
        *(
            UseLine(f"Segment {use['name']}", "", _segment_url, (use["id"],))
            for use in uses.get("segments", ())
        ),
    ]


def _make_strategies_line(uses: Iterable[dict[str, Any]]) -> Iterator[UseLine]:
    """One line for all strategies of a flag in an environment."""
    places = Counter((use["projectId"], use["featureName"], use["environment"]) for use in uses)
    for (project, flag, environment), number in places.items():
        several = f"{number:,} strategies " if number > 1 else ""
        where = f"{several}in {environment}, project {project}"
        yield UseLine(flag, where, flag_url, (project, flag))


def _make_flag_line(use: dict[str, Any], where: str) -> UseLine:
    project, flag = use["projectId"], use["featureName"]
    return UseLine(flag, f"{where}, project {project}", flag_url, (project, flag))


def _make_project_line(project: str, where: str) -> UseLine:
    return UseLine(project, where, project_url, (project, "project-settings"))


def _segment_url(segment_id: int) -> str:
    return reverse("segment", args=[segment_id])


def paginate_uses(request: HttpRequest, uses: Uses) -> Listing[UseLine]:
    return Listing(request.GET, use_lines(uses), columns=())
