"""Moves a flag to another project."""

from collections.abc import Iterable

from django.db.models import Q

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, Problem
from groups.access import Caller, Permission
from projects.access import access_flag_for_update, access_project_for_update, check_project, lock_projects
from projects.flags.actions import check_room
from projects.flags.name_rules import find_pattern_problem
from projects.flags.queries import check_arrivals
from projects.models import (
    Dependency,
    Flag,
    FlagEnvironment,
    Project,
    ProjectEnvironment,
    Segment,
    StrategySegment,
)
from projects.project_scope import hold_segments
from projects.used_by.queries import find_segments_ahead


@transactional
def move_flag(project_id: str, name: str, new_project_id: str, *, caller: Caller) -> Flag:
    """Moves the flag, with all its data, to another project; the caller needs the permission in both.

    Raises NotFound, NoAccess, ValidationError if the new project does not exist, and InvalidOperation if the new
    project is full or the flag cannot move: its name does not match the new project's pattern, it has a dependency,
    it or a later milestone uses a segment of the old project, or it is on in an environment that the new project does
    not use.
    """
    check_project(caller, new_project_id, "newProjectId")
    # Locks both projects at once, in id order, so that two moves in opposite directions cannot deadlock.
    lock_projects(caller, [project_id, new_project_id])
    flag = access_flag_for_update(caller, project_id, name, Permission.MOVE_FEATURE_TOGGLE)
    target = access_project_for_update(caller, new_project_id, Permission.MOVE_FEATURE_TOGGLE)
    if target.pk == project_id:
        return flag
    _check_move(flag, target)
    check_room(target, 1)
    check_arrivals([name], target.pk, project_id, caller)
    flag.project = target
    flag.save(update_fields=["project"])
    _add_environments(flag, target)
    record(
        Event.of_flag(
            EventType.FEATURE_PROJECT_CHANGE,
            flag,
            before={"project": project_id},
            after={"project": target.pk},
        ),
        actor=caller,
    )
    return flag


def _check_move(flag: Flag, target: Project) -> None:
    problems = list(_list_obstacles(flag, target))
    if problems:
        reasons = "; ".join(problem.message for problem in problems)
        raise InvalidOperation(f"{flag.name} cannot be moved to {target.pk}: {reasons}.", details=problems)


def _list_obstacles(flag: Flag, target: Project) -> Iterable[Problem]:
    if problem := find_pattern_problem(flag.name, target):
        yield Problem("name", problem.rstrip("."))
    for child, parent in Dependency.objects.filter(Q(flag=flag) | Q(parent=flag)).values_list(
        "flag__name", "parent__name"
    ):
        yield Problem("dependencies", f"{child} depends on {parent}")
    used = StrategySegment.objects.filter(strategy__flag=flag).values_list("segment_id", flat=True)
    needed = find_segments_ahead(flag.pk).union(used)
    hold_segments(needed)
    segments = Segment.objects.filter(pk__in=needed, project__isnull=False).exclude(project=target)
    for segment in sorted(set(segments.values_list("name", flat=True))):
        yield Problem("segments", f"segment {segment} belongs to project {flag.project_id}")
    on = FlagEnvironment.objects.filter(flag=flag, enabled=True)
    for environment in on.exclude(environment__in=target.environments.all()).order_by("environment"):
        yield Problem(
            "environments", f"it is on in {environment.environment_id}, which {target.pk} does not have"
        )


def _add_environments(flag: Flag, target: Project) -> None:
    places = ProjectEnvironment.objects.filter(project=target).values_list("environment_id", flat=True)
    FlagEnvironment.objects.bulk_create(
        [FlagEnvironment(flag=flag, environment_id=place) for place in places], ignore_conflicts=True
    )
