"""Summaries of flags in each environment of their project, as shown in lists.

Every function accepts any number of flags and runs a fixed number of queries.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Func, IntegerField, Q, Sum
from django.utils import timezone

from flagadmin.core.http.timestamps import iso
from projects.models import Flag, FlagEnvironment, FlagLastSeen, ProjectEnvironment, Strategy, UsageHour

Document = dict[str, Any]
Place = tuple[int, str]
"""A flag's id and an environment name."""

NO_EVALUATIONS = {"yes": 0, "no": 0}


def environment_summaries(flags: Sequence[Flag]) -> dict[int, list[Document]]:
    """For each flag, one summary per environment of its project, in sort order. Four queries."""
    ids = [flag.pk for flag in flags]
    switches = _switches(ids)
    counts = _strategy_counts(ids)
    seen = {
        (flag_id, environment): moment
        for flag_id, environment, moment in FlagLastSeen.objects.filter(flag_id__in=ids).values_list(
            "flag_id", "environment", "seen_at"
        )
    }
    places = _project_environments({flag.project_id for flag in flags})
    summaries: dict[int, list[Document]] = {}
    for flag in flags:
        summaries[flag.pk] = []
        for name, kind, order in places[flag.project_id]:
            enabled, variant_count = switches.get((flag.pk, name), (False, 0))
            total, active = counts.get((flag.pk, name), (0, 0))
            summaries[flag.pk].append(
                {
                    "name": name,
                    "enabled": enabled,
                    "type": kind,
                    "sortOrder": order,
                    "variantCount": variant_count,
                    "lastSeenAt": iso(seen.get((flag.pk, name))),
                    "hasStrategies": total > 0,
                    "hasEnabledStrategies": active > 0,
                }
            )
    return summaries


def evaluation_counts(ids: Sequence[int]) -> dict[Place, Document]:
    """How often SDKs evaluated each flag in each environment in the last hour, and the results."""
    rows = UsageHour.objects.filter(flag_id__in=ids, hour__gt=timezone.now() - timedelta(hours=1))
    summed = rows.order_by().values("flag_id", "environment").annotate(yes_sum=Sum("yes"), no_sum=Sum("no"))
    return {
        (row["flag_id"], row["environment"]): {"yes": row["yes_sum"], "no": row["no_sum"]} for row in summed
    }


def _project_environments(projects: Iterable[str]) -> dict[str, list[tuple[str, str, int]]]:
    environments: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    rows = ProjectEnvironment.objects.filter(project_id__in=list(projects)).order_by(
        "environment__sort_order", "environment_id"
    )
    for project, *environment in rows.values_list(
        "project_id", "environment_id", "environment__type", "environment__sort_order"
    ):
        environments[project].append(tuple(environment))  # type: ignore[arg-type]
    return environments


def _switches(ids: Sequence[int]) -> dict[Place, tuple[bool, int]]:
    count = Func(F("variants"), function="jsonb_array_length", output_field=IntegerField())
    rows = FlagEnvironment.objects.filter(flag_id__in=ids).annotate(variant_count=count)
    return {
        (flag_id, environment): (enabled, variant_count)
        for flag_id, environment, enabled, variant_count in rows.values_list(
            "flag_id", "environment_id", "enabled", "variant_count"
        )
    }


def _strategy_counts(ids: Sequence[int]) -> dict[Place, tuple[int, int]]:
    """The number of (all, enabled) strategies of each flag in each environment."""
    rows = Strategy.objects.filter(flag_id__in=ids).order_by().values("flag_id", "environment_id")
    counted = rows.annotate(total=Count("id"), active=Count("id", filter=Q(disabled=False)))
    return {(row["flag_id"], row["environment_id"]): (row["total"], row["active"]) for row in counted}
