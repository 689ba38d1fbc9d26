"""Plans reverting a flag to one of its versions: takes back all changes since, whoever made them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError, check_problems
from flagadmin.core.wording import choices
from groups.access import Caller
from projects.history.flag_parts import DEPENDENCIES, ENVIRONMENT, FlagPart, find_differing_parts
from projects.history.queries import readable_events
from projects.history.versions import read_present_version, read_version
from projects.models import Flag, ProjectEnvironment, Segment
from projects.reverts.parts import PlannedPart, Target, format_moment, plan_parts, restore_parts


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
    """``before`` is the flag's present version; ``parts`` are all that differ from the one to revert to."""

    before: Document
    parts: Sequence[PlannedPart]


def find_target(
    caller: Caller, flag: Flag, *, event: int | None = None, at: datetime | None = None
) -> Target:
    """Raises ValidationError if the flag has no such event."""
    if event is None:
        assert at is not None
        return Target(at)
    audit_event = readable_events(caller).filter(pk=event, feature=flag.name).first()
    if audit_event is None:
        raise ValidationError.at("event", f"{flag.name} has no event {event}")
    return Target(audit_event.created_at, event)


@consistent_reads()
def plan_revert(flag: Flag, target: Target, *, lock: bool = False, caller: Caller) -> RevertPlan:
    """Leaves out environments that the project did not use then.

    With ``lock``, the segments that it would restore stay as they are until the end of the transaction.
    Raises NotFound if there was no such flag then, Conflict if it was archived.
    """
    before = read_present_version(flag)
    then = read_version(flag, event=target.event) if target.event else read_version(flag, at=target.at)
    moment = format_moment(target.at)
    is_older = target.event is None and flag.created_at > target.at
    if then is None or is_older or not caller.can_read(then["project"]):
        raise NotFound(f"There was no flag {flag.name} on {moment}.")
    if then["archived"]:
        raise Conflict(f"{flag.name} was archived on {moment}. Choose a version in which it was active.")
    unused = _find_unused_then(flag.project_id, target)
    parts = [part for part in find_differing_parts(before, then) if part.environment not in unused]
    return RevertPlan(before, plan_parts(flag, parts, target, lock=lock, caller=caller))


def _find_unused_then(project: str, target: Target) -> set[str]:
    """The environments that the project uses now and did not use then: what flags have there stays."""
    kinds = (E.PROJECT_ENVIRONMENT_ADDED.value, E.PROJECT_ENVIRONMENT_REMOVED.value)
    events = AuditEvent.objects.filter(project=project, type__in=kinds).order_by("id")
    first: dict[str | None, str] = {}
    for environment, kind in target.filter_later(events).values_list("environment", "type"):
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


def find_changed_segments(plan: RevertPlan, target: Target) -> list[str]:
    """The names of those whose conditions are not those of then. Two queries, none without segments."""
    version = restore_parts(plan.before, [planned.part for planned in plan.parts])
    used = {
        segment
        for state in version["environments"]
        for strategy in state["strategies"]
        for segment in strategy["segments"]
    }
    if not used:
        return []
    kind = E.SEGMENT_UPDATED.value
    changes = AuditEvent.objects.filter(type=kind, before__id__in=sorted(used)).order_by("id")
    then: dict[int, Any] = {}
    for key, constraints in target.filter_later(changes).values_list("before__id", "before__constraints"):
        then.setdefault(key, constraints)
    now = Segment.objects.filter(pk__in=then).order_by("name")
    return [segment.name for segment in now if segment.constraints != then[segment.pk]]
