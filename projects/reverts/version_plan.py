"""Plans reverting a flag to one of its versions: reverts all changes since, by all authors."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError, check_problems
from flagadmin.core.wording import choices
from groups.access import Caller
from projects.definition_parts import read_segments
from projects.history.definitions_at import read_present_version, read_version
from projects.history.diff import DEPENDENCIES, ENVIRONMENT, FlagPart, find_differing_parts
from projects.history.queries import readable_events
from projects.models import Flag, ProjectEnvironment
from projects.reverts.parts import PlannedPart, format_moment, plan_parts, restore_parts
from projects.states import FlagState


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of parts to revert. ``environments`` None: all."""

    environments: frozenset[str] | None = None
    dependencies: bool = True
    details: bool = True

    def includes(self, part: FlagPart) -> bool:
        if part.kind == ENVIRONMENT:
            return self.environments is None or part.environment in self.environments
        return self.dependencies if part.kind == DEPENDENCIES else self.details


EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """``before`` is the flag's present version; ``parts`` are all that differed then."""

    before: FlagState
    parts: Sequence[PlannedPart]


def find_target(
    caller: Caller, flag: Flag, *, event: int | None = None, at: datetime | None = None
) -> datetime:
    """The moment of an event, or the given one. Raises ValidationError if the flag has no such event."""
    if event is None:
        assert at is not None
        return at
    audit_event = readable_events(caller).filter(pk=event, feature=flag.name).first()
    if audit_event is None:
        raise ValidationError.at("event", f"{flag.name} has no event {event}")
    return audit_event.created_at


@consistent_reads()
def plan_revert(flag: Flag, at: datetime, *, lock: bool = False, caller: Caller) -> RevertPlan:
    """Leaves out environments that the project did not use then.

    With ``lock``, the segments to restore cannot change until the end of the transaction. Raises NotFound if the flag
    did not exist then, Conflict if it was archived or if that moment is unknown.
    """
    before = read_present_version(flag)
    then = read_version(flag, at)
    moment = format_moment(at)
    if then is None or not caller.can_read(then["project"]):
        raise NotFound(f"There was no flag {flag.name} on {moment}.")
    if then["archived"]:
        raise Conflict(f"{flag.name} was archived on {moment}. Choose a version in which it was active.")
    unused = find_unused_then(flag.project_id, at)
    parts = [part for part in find_differing_parts(before, then) if part.environment not in unused]
    return RevertPlan(before, plan_parts(flag, parts, at, lock=lock, caller=caller))


def find_unused_then(project: str, at: datetime) -> set[str]:
    """The environments that the project uses now but did not use then, in which flags keep their settings."""
    kinds = (E.PROJECT_ENVIRONMENT_ADDED.value, E.PROJECT_ENVIRONMENT_REMOVED.value)
    events = AuditEvent.objects.filter(project=project, type__in=kinds, created_at__gt=at).order_by("id")
    first: dict[str | None, str] = {}
    for environment, kind in events.values_list("environment", "type"):
        first.setdefault(environment, kind)
    return {name for name, kind in first.items() if name and kind == E.PROJECT_ENVIRONMENT_ADDED}


def check_environments(names: Collection[str], flag: Flag) -> None:
    """Raises ValidationError naming the environments that the project does not use."""
    used = ProjectEnvironment.objects.filter(project=flag.project_id)
    known = list(used.values_list("environment_id", flat=True))
    problems = [
        Problem(
            "environments",
            f"project {flag.project_id} has no environment {name}. Available: {choices(known)}",
        )
        for name in sorted(set(names) - set(known))
    ]
    check_problems(problems)


def find_changed_segments(plan: RevertPlan, at: datetime) -> list[str]:
    """The names of segments whose conditions have changed since. Two queries, none without segments."""
    version = restore_parts(plan.before, [planned.part for planned in plan.parts])
    used = {
        segment
        for state in version["environments"]
        for strategy in state["strategies"]
        for segment in strategy["segments"]
    }
    return find_changed_conditions(used, at)


def find_changed_conditions(segments: Collection[int], at: datetime) -> list[str]:
    """The names of those, among these segments, that had other conditions then. Two queries, none without segments."""
    with connection.cursor() as cursor:
        now, then = (read_segments(cursor, segments, moment) for moment in (None, at))
    changed = (key for key in now.keys() & then.keys() if now[key]["constraints"] != then[key]["constraints"])
    return sorted(now[key]["name"] for key in changed)
