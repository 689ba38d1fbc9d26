"""Keeps the names of guarded flags: code asks for a flag by name, whichever project has it.

A disabled flag could be moved away and turned on there, or deleted and recreated elsewhere, without the request that
turning it on requires. So both need the permission to skip requests in its old place.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from flagadmin.core.audit.record import AuditEvent, EventType, read_transaction_time
from flagadmin.core.db.transactions import make_at_end_of_action
from flagadmin.core.errors import list_some
from groups.access import Caller
from projects.models import ProjectEnvironment
from projects.used_by.queries import PlannedUse
from releases.gate import is_skipped
from releases.gate_refusal import Gated, NeedsSkip
from releases.models import Milestone, ReleasePlan, ReleaseTemplate
from releases.plans.queries import UNFINISHED


class _Arrivals(list[Callable[[], None]]):
    """Checks of flags that have come to projects in an action, made at its end, after other refusals."""

    def __call__(self) -> None:
        for check in self:
            check()


def check_arrivals(names: Collection[str], project_id: str, moved_from: str | None, caller: Caller) -> None:
    """Refuses the action at its end, with NeedsSkip, if one of the flags was in another guarded project."""
    if (arrivals := make_at_end_of_action(_Arrivals)) is not None:
        arrivals.append(partial(_check, names, project_id, moved_from, caller))


def _check(names: Collection[str], project_id: str, moved_from: str | None, caller: Caller) -> None:
    guarded: dict[str, list[str]] = {}
    links = ProjectEnvironment.objects.needing_requests().exclude(project=project_id)
    for project, environment in links.order_by("environment_id").values_list("project_id", "environment_id"):
        guarded.setdefault(project, []).append(environment)
    if not guarded:
        return
    for project, left in _find_origins(names, moved_from):
        for environment in guarded.get(project, ()):
            if not is_skipped(caller, project, environment, left, _find_skipped(left)):
                gated = _describe(project, environment, left, project_id, is_moved=bool(moved_from))
                raise NeedsSkip(gated.tell(caller))


def _find_skipped(names: Collection[str]) -> set[tuple[str, str]]:
    """The skips of requests that this action has recorded for these flags."""
    events = AuditEvent.objects.filter(type=EventType.CHANGE_REQUEST_SKIPPED, feature__in=names)
    recorded = events.filter(created_at=read_transaction_time()).values_list("environment", "feature")
    return {(environment or "", feature or "") for environment, feature in recorded}


def _find_origins(names: Collection[str], moved_from: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yields the last projects of the flags, with their names."""
    if moved_from is not None:
        yield moved_from, sorted(names)
        return
    deletions = AuditEvent.objects.filter(type=EventType.FEATURE_DELETED, feature__in=names)
    rows = deletions.order_by("created_at", "id").values_list("feature", "project")
    last = {name or "": project or "" for name, project in rows}
    for project in sorted({project for project in last.values() if project}):
        yield project, sorted(name for name, origin in last.items() if origin == project)


def _describe(project: str, environment: str, names: list[str], target: str, *, is_moved: bool) -> Gated:
    named = list_some(names, 3)
    done = f"This would move {named}" if is_moved else f"This would make {named} anew"
    was = "is" if is_moved else "was deleted"
    effect = (
        f"{done} in project {target}. It {was} in project {project}, where changes of {environment} need a change "
        "request, and code asks for a flag by its name. Only those who may skip change requests there can do that."
    )
    return Gated(project, environment, names, None, effect=effect)


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
