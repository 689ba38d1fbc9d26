"""Reads flags and their related rows into the documents used by the API and by audit events.

Every function accepts any number of flags and runs a fixed number of queries.

Checks by an app above on flags that come to a project: moved from another, or created under a name.

Reads the lifecycle stages of flags.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Case, Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum, Value, When
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.lookups import find_best_matches
from flagadmin.core.document import Document
from flagadmin.core.hook import Hook
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.engine.definitions import StrategyDefinition
from projects.models import (
    Dependency,
    Environment,
    FavoriteFlag,
    Flag,
    FlagEnvironment,
    FlagLink,
    FlagQuerySet,
    FlagTag,
    LifecycleStage,
    Strategy,
    StrategySegment,
    UsageHour,
)
from projects.strategies.fields import make_strategy_document

Place = tuple[int, str]
"""A flag's id and an environment name."""

_SWITCHES = """
SELECT flag_id, environment_id, enabled, jsonb_array_length(variants)
  FROM projects_flagenvironment WHERE flag_id = ANY(%s)
"""
# All strategies, and the enabled ones.
_STRATEGY_COUNTS = """
SELECT flag_id, environment_id, count(*), count(*) FILTER (WHERE NOT disabled)
  FROM projects_strategy WHERE flag_id = ANY(%s) GROUP BY flag_id, environment_id
"""
_LAST_SEEN = """
SELECT flag_id, environment, seen_at FROM projects_flaglastseen WHERE flag_id = ANY(%s)
"""
_ENVIRONMENTS = """
SELECT p.project_id, e.name, e.type, e.sort_order
  FROM projects_projectenvironment p JOIN projects_environment e ON e.name = p.environment_id
 WHERE p.project_id = ANY(%s) ORDER BY e.sort_order, e.name
"""

NO_EVALUATIONS = {"yes": 0, "no": 0}


def read_environment_summaries(flags: Sequence[Flag]) -> dict[int, list[Document]]:
    """Reads for each flag one summary per environment of its project, in sort order. Four queries."""
    ids = [flag.pk for flag in flags]
    with connection.cursor() as cursor:
        switches, counts, seen = (
            _read_by_place(cursor, statement, ids) for statement in (_SWITCHES, _STRATEGY_COUNTS, _LAST_SEEN)
        )
        environments = _read_environments(cursor, {flag.project_id for flag in flags})
    summaries: dict[int, list[Document]] = {}
    for flag in flags:
        summaries[flag.pk] = []
        for name, kind, order in environments[flag.project_id]:
            enabled, variant_count = switches.get((flag.pk, name), (False, 0))
            total, active = counts.get((flag.pk, name), (0, 0))
            summaries[flag.pk].append(
                {
                    "name": name,
                    "enabled": enabled,
                    "type": kind,
                    "sortOrder": order,
                    "variantCount": variant_count,
                    "lastSeenAt": iso(*seen.get((flag.pk, name), (None,))),
                    "hasStrategies": total > 0,
                    "hasEnabledStrategies": active > 0,
                }
            )
    return summaries


def count_evaluations(ids: Sequence[int]) -> dict[Place, Document]:
    """Counts SDKs' evaluations of each flag in each environment in the last hour, by result."""
    rows = UsageHour.objects.filter(flag_id__in=ids, hour__gt=timezone.now() - timedelta(hours=1))
    summed = rows.order_by().values("flag_id", "environment").annotate(yes_sum=Sum("yes"), no_sum=Sum("no"))
    return {
        (row["flag_id"], row["environment"]): {"yes": row["yes_sum"], "no": row["no_sum"]} for row in summed
    }


def _read_by_place(cursor: Any, statement: str, ids: Sequence[int]) -> dict[Place, tuple[Any, ...]]:
    cursor.execute(statement, [list(ids)])
    return {(flag_id, environment): tuple(values) for flag_id, environment, *values in cursor.fetchall()}


def _read_environments(cursor: Any, projects: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The name, type and sort order of each environment of the projects."""
    cursor.execute(_ENVIRONMENTS, [list(projects)])
    environments: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for project, *environment in cursor.fetchall():
        environments[project].append(tuple(environment))
    return environments


RECENT_CHANGES = 200  # audit events; searches show the flags of these first
MAX_RANKED = 1000  # flags that a search ranks


def make_metadata_answer(flag: Flag) -> Document:
    """The flag's own fields, as in the response to its creation."""
    return {
        key: value for key, value in make_metadata_document(flag).items() if key != "owner"
    } | make_owner_member(flag)


def make_owner_member(flag: Flag) -> Document:
    """``owner`` for answers. Flags without one omit it, to match the reference server's."""
    owner = flag.make_owner_document()
    return {} if owner is None else {"owner": owner}


def make_metadata_document(flag: Flag) -> Document:
    """The flag's own fields, as in its audit events."""
    document = {
        "name": flag.name,
        "description": flag.description,
        "type": flag.type,
        "project": flag.project_id,
        "stale": flag.stale,
        "createdAt": iso(flag.created_at),
        "impressionData": flag.impression_data,
        "archived": flag.is_archived,
        "owner": flag.make_owner_document(),
    }
    return document | ({"archivedAt": iso(flag.archived_at)} if flag.is_archived else {})


def read_strategy_documents(strategies: Iterable[Strategy]) -> list[StrategyDefinition]:
    """The strategies in the given order. One query loads all their segments."""
    strategies = list(strategies)
    segments: dict[Any, list[int]] = defaultdict(list)
    links = StrategySegment.objects.filter(strategy_id__in=[strategy.pk for strategy in strategies])
    for strategy_id, segment_id in links.order_by("id").values_list("strategy_id", "segment_id"):
        segments[strategy_id].append(segment_id)
    return [
        make_strategy_document(strategy, id=str(strategy.pk), segments=segments[strategy.pk])
        for strategy in strategies
    ]


def tag_document(tag: FlagTag) -> Document:
    return {"type": tag.tag_type_id, "value": tag.value}


def make_link_document(link: FlagLink) -> Document:
    return {"id": str(link.pk), "url": link.url, "title": link.title}


def make_dependency_document(parent: str, enabled: bool, variants: list[str]) -> Document:
    return {"feature": parent, "enabled": enabled, "variants": variants}


def read_dependency_documents(flag: Flag) -> list[Document]:
    """The flag's parents, in the order in which they were added."""
    rows = Dependency.objects.filter(flag=flag).order_by("id")
    return [make_dependency_document(*row) for row in rows.values_list("parent__name", "enabled", "variants")]


def list_flag_summaries(flags: Sequence[Flag], *, caller: Caller) -> list[Document]:
    """Flags as shown in lists, with the number of variants instead of the variants. Six queries."""
    ids = [flag.pk for flag in flags]
    environments = read_environment_summaries(flags)
    tags = _read_tags(ids)
    favorites = _read_favorites(ids, caller)
    return [
        {
            "type": flag.type,
            "description": flag.description,
            "favorite": flag.pk in favorites,
            "name": flag.name,
            "createdAt": iso(flag.created_at),
            "stale": flag.stale,
            "impressionData": flag.impression_data,
            "environments": environments[flag.pk],
        }
        | ({"tags": tags[flag.pk]} if flag.pk in tags else {})
        for flag in flags
    ]


def search_documents(flags: Sequence[Flag], *, caller: Caller) -> list[Document]:
    """Flags as shown in search results: summaries plus project, segments, usage and lifecycle. Ten queries.

    The caller must fetch ``created_by`` and the owners with the flags.
    """
    ids = [flag.pk for flag in flags]
    kinds = _read_dependency_kinds(ids)
    stages = read_current_stages(ids)
    counts = count_evaluations(ids)
    segments = _read_segment_names(ids)
    return [
        summary
        | {
            "project": flag.project_id,
            "archivedAt": iso(flag.archived_at),
            "dependencyType": kinds.get(flag.pk),
            "segments": segments.get(flag.pk, []),
            "environments": [
                environment
                | counts.get((flag.pk, environment["name"]), NO_EVALUATIONS)
                | {"changeRequestIds": []}
                for environment in summary["environments"]
            ],
            "createdBy": make_creator_document(flag.created_by),
        }
        | make_owner_member(flag)
        | _make_lifecycle_member(flag, stages)
        for flag, summary in zip(flags, list_flag_summaries(flags, caller=caller), strict=True)
    ]


def _read_dependency_kinds(ids: Sequence[int]) -> dict[int, str]:
    rows = Dependency.objects.filter(Q(flag_id__in=ids) | Q(parent_id__in=ids))
    kinds: dict[int, str] = {}
    for child, parent in rows.values_list("flag_id", "parent_id"):
        kinds[child] = "child"
        kinds[parent] = "parent"
    return kinds


def _read_segment_names(ids: Sequence[int]) -> dict[int, list[str]]:
    rows = StrategySegment.objects.filter(strategy__flag_id__in=ids).order_by("segment__name")
    names: dict[int, list[str]] = defaultdict(list)
    for flag_id, name in rows.values_list("strategy__flag_id", "segment__name").distinct():
        names[flag_id].append(name)
    return names


def make_person_document(user: Any) -> Document:
    return {"id": user.pk, "name": user.display_name}


def make_creator_document(user: Any | None) -> Document:
    """The creator, or a placeholder: clients read the members of ``createdBy`` without checking for null."""
    return make_person_document(user) if user else {"id": 0, "name": "unknown"}


def _make_lifecycle_member(flag: Flag, stages: dict[int, Document]) -> Document:
    """The current stage; flags created before lifecycle stages existed have none."""
    return {"lifecycle": stages[flag.pk]} if flag.pk in stages else {}


def _read_tags(ids: Sequence[int]) -> dict[int, list[Document]]:
    tags: dict[int, list[Document]] = defaultdict(list)
    rows = FlagTag.objects.filter(flag_id__in=ids)
    for flag_id, tag_type, value, color in rows.values_list(
        "flag_id", "tag_type_id", "value", "tag_type__color"
    ):
        tags[flag_id].append({"value": value, "type": tag_type, "color": color})
    return tags


def _read_favorites(ids: Sequence[int], caller: Caller) -> set[int]:
    if caller.user is None:
        return set()
    return set(
        FavoriteFlag.objects.filter(user=caller.user, flag_id__in=ids).values_list("flag_id", flat=True)
    )


def search_flags(caller: Caller, words: Sequence[str]) -> QuerySet[Flag]:
    """Sorts active flags first among equals, then the caller's favorites and the most recently changed ones."""
    favorites = FavoriteFlag.objects.filter(user=caller.user).values("flag")
    changed = AuditEvent.objects.exclude(feature=None).newest_first().values("feature")[:RECENT_CHANGES]
    flags = Flag.objects.readable_by(caller).select_related("project")
    flags = flags.annotate(lively=Q(pk__in=favorites) | Q(name__in=changed))
    first: list[Any] = [F("archived_at").asc(nulls_first=True), "-lively"]
    return find_best_matches(flags, words, "name", also=["description"], first=first, limit=MAX_RANKED)


def list_production_toggles(flag: Flag) -> list[tuple[str, bool]]:
    """(environment, enabled) in the production environments of the flag's project."""
    states = FlagEnvironment.objects.filter(flag=flag, environment=OuterRef("name"), enabled=True)
    environments = Environment.objects.production().filter(projects=flag.project_id)
    return list(environments.values_list("name", Exists(states)))


check_arrivals: Hook[[Collection[str], str, str | None, Caller], None] = Hook(
    "projects.flags.queries.check_arrivals", lambda names, project_id, moved_from, caller: None
)
"""Called with the names of the flags, their project and, if they are moved, the previous one. Raises Refusal."""


Stage = LifecycleStage.Stage
ORDER = Stage.values
STAGE_MEMBERS = {stage: "preLive" if stage == Stage.PRE_LIVE else str(stage) for stage in ORDER}
"""The stages as members of objects."""


def read_lifecycle(flag: Flag) -> list[Document]:
    """All stages that the flag has entered, in lifecycle order."""
    return [make_stage_document(row) for row in _read_in_order([flag.pk])]


def read_current_stage(flag: Flag) -> LifecycleStage | None:
    """The last stage that the flag has entered."""
    return next(reversed(_read_in_order([flag.pk])), None)


def read_current_stages(ids: Sequence[int]) -> dict[int, Document]:
    """The current stage of each of these flags: the last one it entered. One query."""
    return {row.flag_id: make_stage_document(row) for row in _read_in_order(ids)}


def count_stages(flags: FlagQuerySet) -> dict[str, int]:
    """The number of these flags by their current stage, as a member. Every stage has an entry. Two queries."""
    ranks = Case(*(When(stage=stage, then=Value(rank)) for rank, stage in enumerate(ORDER)))
    active = LifecycleStage.objects.filter(flag__in=flags.active()).order_by()
    last = active.values("flag").annotate(rank=Max(ranks))
    counts = last.aggregate(
        **{STAGE_MEMBERS[stage]: Count("flag", filter=Q(rank=rank)) for rank, stage in enumerate(ORDER)}
    )
    return counts | {"archived": flags.archived().count()}


def _read_in_order(ids: Sequence[int]) -> list[LifecycleStage]:
    return sorted(LifecycleStage.objects.filter(flag_id__in=ids), key=lambda row: ORDER.index(row.stage))


def make_stage_document(row: LifecycleStage) -> Document:
    stage = {"stage": row.stage, "enteredStageAt": iso(row.entered_at)}
    return stage | ({"status": row.status} if row.status else {})
