"""Archives and revives flags, and deletes archived ones.

Each action handles many flags with few queries.

Deletes the rows of archived flags, for the API, the console, the admin site and project deletion.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import CASCADE, QuerySet

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record_all, record_selected
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, Problem, choices
from groups.access import Caller, Permission
from projects.access import access_flags_for_update, access_flags_of_projects, access_project
from projects.deletion.kept_names import FLAG, end_names
from projects.flags.actions import check_room
from projects.flags.queries import make_metadata_document
from projects.models import Dependency, Flag, FlagEnvironment, LifecycleStage
from projects.strategies.fields import FIELDS

ARCHIVED = LifecycleStage.Stage.ARCHIVED


@transactional
def archive_flags(
    project_id: str, names: Iterable[str], *, expected: Expected = None, caller: Caller
) -> list[Flag]:
    """Archives the active flags among ``names``; archived ones do not change.

    ``expected`` refers to the metadata document. Raises NotFound, NoAccess, EditConflict, and
    InvalidOperation if an active flag that is not being archived depends on one of these flags, or if one of
    them is not in the project.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.DELETE_FEATURE)
    return _archive(flags, expected=expected, caller=caller)


@transactional
def archive_flags_of_projects(names: Mapping[str, Sequence[str]], *, caller: Caller) -> list[Flag]:
    """Like ``archive_flags``, for flags of several projects, which may depend on each other.

    ``names`` are by project. All or nothing.
    """
    return _archive(access_flags_of_projects(caller, names, Permission.DELETE_FEATURE), caller=caller)


def _archive(flags: Iterable[Flag], *, expected: Expected = None, caller: Caller) -> list[Flag]:
    active = [flag for flag in flags if not flag.is_archived]
    for flag in active:
        check_expected(expected, make_metadata_document(flag))
    check_no_children(active, "archived")
    events = _make_events(EventType.FEATURE_ARCHIVED, active)
    foresee(events, KnownChange({(flag.name, ""): None for flag in active}))
    now = read_transaction_time()
    for flag in active:
        flag.archived_at = now
    Flag.objects.filter(pk__in=[flag.pk for flag in active]).update(archived_at=now)
    LifecycleStage.objects.bulk_create(
        [LifecycleStage(flag=flag, stage=ARCHIVED, entered_at=now) for flag in active],
        update_conflicts=True,
        unique_fields=["flag", "stage"],
        update_fields=["entered_at"],
    )
    record_all(events, actor=caller)
    return active


@transactional
def revive_flags(project_id: str, names: Iterable[str], *, caller: Caller) -> list[Flag]:
    """Revives the archived flags among ``names``, off in every environment; active ones do not change.

    Raises NotFound, NoAccess, InvalidOperation if a flag is not in the project or the project is full, and
    ValidationError if the installation is.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.UPDATE_FEATURE)
    archived = [flag for flag in flags if flag.is_archived]
    check_room(access_project(caller, project_id), len(archived))
    ids = [flag.pk for flag in archived]
    for flag in archived:
        flag.archived_at = None
    on = FlagEnvironment.objects.filter(flag_id__in=ids, enabled=True)
    were_on = defaultdict(list)
    for flag_id, environment in on.order_by("environment_id").values_list("flag_id", "environment_id"):
        were_on[flag_id].append(environment)
    if were_on:
        on.update(enabled=False)
    LifecycleStage.objects.filter(flag_id__in=ids, stage=ARCHIVED).delete()
    Flag.objects.filter(pk__in=ids).update(archived_at=None)
    record_all(_make_events(EventType.FEATURE_REVIVED, archived, were_on), actor=caller)
    return archived


def check_archived(flag: Flag) -> None:
    """Raises InvalidOperation if the flag is active: only archived flags can be deleted."""
    if not flag.is_archived:
        raise InvalidOperation(f"Flag {flag.name} is still active. Archive it first.")


@transactional
def delete_flags(project_id: str, names: Iterable[str], *, caller: Caller) -> list[str]:
    """Permanently deletes archived flags, and returns their names.

    Raises NotFound, NoAccess, and InvalidOperation if one of them is active or not in the project, or if an active
    flag depends on one of them.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.DELETE_FEATURE, archived=True)
    remove_flags(flags, caller=caller)
    return [flag.name for flag in flags]


def check_archive(project_id: str, names: Iterable[str]) -> tuple[list[str], bool]:
    """The active flags among ``names`` that block archiving, and whether any of the flags has a parent.

    Read-only. The caller has checked that the project may be read.
    """
    flags = Flag.objects.active().filter(project_id=project_id, name__in=list(names))
    parents = {parent for parent, _ in find_children_outside(flags)}
    return sorted(parents), Dependency.objects.filter(flag__in=flags).exists()


def _make_events(
    kind: EventType, flags: Sequence[Flag], were_on: Mapping[int, list[str]] | None = None
) -> Iterable[Event]:
    """``were_on`` are environments in which the flags were on."""
    return [
        Event.of_flag(kind, flag, earlier={"on": were_on.get(flag.pk, [])} if were_on is not None else None)
        for flag in flags
    ]


# A project may have ten thousand archived flags. Copying their documents from table to table in one statement keeps
# memory use low and avoids round trips.
_DOCUMENTS = """
WITH gone AS MATERIALIZED (SELECT f.* FROM projects_flag f WHERE f.id IN ({flags})),
strategies AS (
    SELECT s.flag_id, s.environment_id, json_agg(json_build_object(
               'id', s.id, {strategy},
               'segments', coalesce(l.segments, '[]')) ORDER BY s.sort_order, s.id) AS listed
      FROM projects_strategy s
      JOIN gone ON gone.id = s.flag_id
      LEFT JOIN (SELECT l.strategy_id, json_agg(l.segment_id ORDER BY l.id) AS segments
                   FROM projects_strategysegment l
                   JOIN projects_strategy s ON s.id = l.strategy_id JOIN gone ON gone.id = s.flag_id
                  GROUP BY 1) AS l ON l.strategy_id = s.id
     GROUP BY 1, 2),
environments AS (
    SELECT flag_id, json_agg(json_build_object(
               'name', environment_id, 'enabled', coalesce(e.enabled, false),
               'variants', coalesce(e.variants, '[]'::jsonb), 'strategies', coalesce(s.listed, '[]'))
               ORDER BY environment_id) AS listed
      FROM (SELECT e.* FROM projects_flagenvironment e JOIN gone ON gone.id = e.flag_id) AS e
      FULL JOIN strategies s USING (flag_id, environment_id)
     GROUP BY 1),
tags AS (
    SELECT t.flag_id, json_agg(json_build_object('type', t.tag_type_id, 'value', t.value)
               ORDER BY t.tag_type_id, t.value) AS listed
      FROM projects_flagtag t JOIN gone ON gone.id = t.flag_id GROUP BY 1),
links AS (
    SELECT l.flag_id, json_agg(json_build_object('url', l.url, 'title', l.title)
               ORDER BY l.created_at, l.id) AS listed
      FROM projects_flaglink l JOIN gone ON gone.id = l.flag_id GROUP BY 1),
parents AS (
    SELECT d.flag_id, json_agg(json_build_object(
               'feature', p.name, 'enabled', d.enabled, 'variants', d.variants) ORDER BY d.id) AS listed
      FROM projects_dependency d JOIN gone ON gone.id = d.flag_id JOIN projects_flag p ON p.id = d.parent_id
     GROUP BY 1),
children AS (
    SELECT d.parent_id AS flag_id, json_object_agg(c.name, (
               SELECT json_agg(json_build_object('feature', p.name, 'enabled', a.enabled, 'variants', a.variants)
                               ORDER BY a.id)
                 FROM projects_dependency a JOIN projects_flag p ON p.id = a.parent_id
                WHERE a.flag_id = c.id)) AS listed
      FROM projects_dependency d JOIN gone ON gone.id = d.parent_id JOIN projects_flag c ON c.id = d.flag_id
     GROUP BY 1)
SELECT gone.project_id, gone.name, json_build_object(
           'name', gone.name, 'description', gone.description, 'type', gone.type, 'project', gone.project_id,
           'stale', gone.stale, 'impressionData', gone.impression_data, 'archived', gone.archived_at IS NOT NULL,
           'createdAt', {created_at}, 'archivedAt', {archived_at},
           'environments', coalesce(environments.listed, '[]'), 'tags', coalesce(tags.listed, '[]'),
           'links', coalesce(links.listed, '[]'), 'dependencies', coalesce(parents.listed, '[]'))::jsonb,
       jsonb_build_object('children', children.listed)
  FROM gone
  LEFT JOIN environments ON environments.flag_id = gone.id
  LEFT JOIN tags ON tags.flag_id = gone.id
  LEFT JOIN links ON links.flag_id = gone.id
  LEFT JOIN parents ON parents.flag_id = gone.id
  LEFT JOIN children ON children.flag_id = gone.id
 ORDER BY gone.name COLLATE "C"
"""
# Same format as flagadmin.core.http.responses.iso.
_ISO = (
    "regexp_replace(to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), '000$', '') || 'Z'"
)


def select_removed_flags(flags: QuerySet[Flag]) -> tuple[str, list[Any]]:
    """A SELECT of (project, flag, document, all parents of each child) for these flags by name, and its parameters."""
    inner, params = flags.order_by().values("pk").query.sql_with_params()
    select = _DOCUMENTS.format(
        flags=inner,
        strategy=", ".join(f"'{field.member}', s.{field.column}" for field in FIELDS),
        created_at=_ISO.format(column="gone.created_at"),
        archived_at=_ISO.format(column="gone.archived_at"),
    )
    return select, list(params)


def remove_flags(flags: Sequence[Flag], *, caller: Caller) -> None:
    """Deletes these flags with all their data and records an event for each, in a fixed number of queries.

    The caller must have archived the flags, locked them and their project, and checked the permission.
    Archived flags elsewhere that depend on a deleted flag lose that parent.

    Raises InvalidOperation naming both flags if an active flag depends on one of them.
    """
    if flags:
        remove_flag_rows(Flag.objects.filter(pk__in=[flag.pk for flag in flags]), caller=caller)


def remove_flag_rows(flags: QuerySet[Flag], *, caller: Caller) -> None:
    """Like ``remove_flags``, but for a queryset: the flags are not loaded into memory."""
    check_no_children(flags, "deleted")
    record_selected(EventType.FEATURE_DELETED, *select_removed_flags(flags), actor=caller)
    end_names(FLAG, flags.order_by().values("name"), caller=caller)
    remove_rows(Dependency.objects.filter(parent__in=flags.order_by().values("pk")))
    remove_rows(flags)


def check_no_children(flags: Sequence[Flag] | QuerySet[Flag], what: str) -> None:
    """Raises InvalidOperation naming every active flag, other than these, that depends on one of them."""
    if pairs := find_children_outside(flags):
        raise make_orphans_error(pairs, what)


def make_orphans_error(pairs: Sequence[tuple[str, str]], what: str) -> InvalidOperation:
    """The error for (parent, child) names."""
    parents = choices({parent for parent, _ in pairs})
    children = choices({child for _, child in pairs})
    return InvalidOperation(
        f"{parents} cannot be {what}: {children} would lose what it depends on.",
        details=[Problem(parent, f"{child} depends on it") for parent, child in pairs],
    )


def find_children_outside(flags: Sequence[Flag] | QuerySet[Flag]) -> list[tuple[str, str]]:
    """Sorted (parent, child) names, where the child is an active flag that is not among ``flags``."""
    ids: Any = flags.order_by().values("pk") if isinstance(flags, QuerySet) else [flag.pk for flag in flags]
    dependencies = Dependency.objects.filter(parent_id__in=ids, flag__archived_at=None).exclude(
        flag_id__in=ids
    )
    return list(dependencies.order_by("parent__name", "flag__name").values_list("parent__name", "flag__name"))


def read_names_and_plans(flags: QuerySet[Flag]) -> tuple[list[str], list[str]]:
    """The names of flags, and their release plans, such as ``Slow (cart, production)``. One query."""
    places = flags.order_by("name", "release_plans__environment").values_list(
        "name", "release_plans__name", "release_plans__environment"
    )
    names = list(dict.fromkeys(name for name, _, _ in places))
    return names, [f"{plan} ({name}, {environment})" for name, plan, environment in places if environment]


def remove_rows(rows: QuerySet) -> None:
    """Deletes rows and the rows that cascade from them, with one query per table and without fetching any."""
    for relation in rows.model._meta.related_objects:
        if getattr(relation, "on_delete", None) is CASCADE:
            owner = f"{relation.field.name}__in"
            remove_rows(relation.related_model._base_manager.filter(**{owner: rows.order_by().values("pk")}))
    rows.order_by()._raw_delete(rows.db)
