"""Finds the strategies, variants, segments and projects that use a segment or a context field."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from flagadmin.core.document import Document
from flagadmin.core.wording import choices, name_flags
from groups.access import Caller
from projects.models import FlagEnvironment, Project, ProjectEnvironment, Segment, Strategy
from projects.used_by.counts import BUILT_IN_FIELDS
from projects.used_by.planned import PlannedUse

Uses = dict[str, list[Document]]


def describe_uses(
    strategies: QuerySet[Strategy], defaults: QuerySet[ProjectEnvironment], planned: Sequence[PlannedUse] = ()
) -> str:
    """``on 2 flags: cart, search, and in the default strategy of shop in production``; empty if unused."""
    flags = set(strategies.values_list("flag__name", flat=True))
    places = [
        f"{project} in {name}" for project, name in defaults.values_list("project_id", "environment_id")
    ]
    parts = [f"on {name_flags(flags)}"] if flags else []
    parts += [f"in the default strategy of {choices(places)}"] if places else []
    parts += [choices(use.words for use in planned)] if planned else []
    return ", and ".join(parts)


def find_default_strategies(segment_id: int) -> QuerySet[ProjectEnvironment]:
    return ProjectEnvironment.objects.filter(default_strategy__segments__contains=[segment_id])


def list_segment_uses(segment_id: int, caller: Caller) -> Uses:
    """Lists what uses the segment, as far as the caller may read it: ``strategies`` of active flags,
    ``defaultStrategies``."""
    return {
        "strategies": _list_strategies(Strategy.objects.filter(segments=segment_id), caller),
        "defaultStrategies": _list_default_strategies(find_default_strategies(segment_id), caller),
    }


def list_context_field_uses(name: str, caller: Caller) -> Uses:
    """Lists what uses the field, as far as the caller may read it: ``strategies`` and ``variants`` of active flags,
    ``defaultStrategies``, ``segments``, and ``projects`` that have it as default stickiness."""
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
    # As text from the database: a hundred thousand UUIDs take longer than everything else.
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
    allowed = caller.readable_projects
    return rows if allowed is None else rows.filter(**{f"{field}__in": allowed})
