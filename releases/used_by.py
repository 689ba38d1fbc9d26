"""Finds the release templates and plans that store a strategy for later, and the objects that it uses."""

from collections.abc import Mapping
from typing import Any

from projects.used_by.queries import PlannedUse
from releases.models import Milestone, ReleasePlan, ReleaseTemplate
from releases.plans.queries import UNFINISHED


def find_planned(members: Mapping[str, Any]) -> list[PlannedUse]:
    """The plans and templates that can still start a milestone with such a strategy, by name. Two queries."""
    milestones = Milestone.objects.filter(strategies__contains=[dict(members)])
    templates = ReleaseTemplate.objects.filter(milestones__in=milestones, archived_at=None)
    named = templates.distinct().order_by("name").values_list("project_id", "name")
    plans = ReleasePlan.objects.filter(milestones__in=milestones, state__in=UNFINISHED)
    rows = plans.distinct().order_by("flag__name", "environment_id")
    placed = rows.values_list("flag__project_id", "flag__name", "environment_id")
    return [
        *(PlannedUse(project, f"in release template {name}") for project, name in named),
        *(
            PlannedUse(project, f"in the release plan of {flag} in {place}")
            for project, flag, place in placed
        ),
    ]


def find_segments_ahead(flag_id: int) -> set[int]:
    """The segments of the milestones of the flag's unfinished plans. One query."""
    plans = ReleasePlan.objects.filter(flag=flag_id, state__in=UNFINISHED)
    milestones = Milestone.objects.filter(plan__in=plans).values_list("strategies", flat=True)
    return {key for strategies in milestones for strategy in strategies for key in strategy["segments"]}
