"""Plans setting an environment back to a moment: every flag there gets the switch, strategies and variants of then.

It reverts everything that has changed since, whoever did it. What all environments share, such as parents and segments,
stays, and so does what cannot be restored or may not be changed: ``kept_out`` says why.

Plans reverting a flag to one of its versions: reverts all changes since, by all authors.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import (
    Conflict,
    InvalidOperation,
    NotFound,
    Problem,
    ValidationError,
    check_problems,
    choices,
)
from groups.access import Caller, missing
from projects.definitions import read_segments
from projects.history.definitions_at import check_known, read_present_version, read_version
from projects.history.diff import DEPENDENCIES, ENVIRONMENT, FlagPart, find_differing_parts
from projects.history.queries import readable_events
from projects.history.timeline import PRESENT, Timeline, list_changed, read_timeline
from projects.models import Flag, Project, ProjectEnvironment
from projects.reverts.parts import PlannedPart, format_moment, plan_parts, restore_parts
from projects.states import IN_ENVIRONMENT, NOTHING, FlagState, by_environment

MAX_FLAGS = 200
"""More flags are not set back at once."""
MAX_CHANGED = 2_000
"""Flags whose versions are read. Some may be again as they were then."""
TOO_MANY = f"; at most {MAX_FLAGS} are set back at once. Choose projects, or a later moment."


class FlagBack(NamedTuple):
    """A flag that would change. ``before`` is its present version."""

    flag: Flag
    before: FlagState
    planned: PlannedPart


class KeptOut(NamedTuple):
    """A flag that differs from then and stays as it is. ``reason`` follows its name in a sentence."""

    project: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class EnvironmentPlan:
    """``segments`` are the names of those that flags there use and that had other conditions then."""

    environment: str
    at: datetime
    flags: Sequence[FlagBack]
    kept_out: Sequence[KeptOut]
    segments: Sequence[str]

    @property
    def projects(self) -> list[str]:
        return sorted({row.flag.project_id for row in self.flags})

    @property
    def document(self) -> Document:
        """What it would do, to compare with what was looked at."""
        return {
            "environment": self.environment,
            "at": self.at.isoformat(),
            "flags": {row.flag.name: [row.planned.part.before, row.planned.part.after] for row in self.flags},
        }

    def only(self, projects: Collection[str], flags: Collection[str] | None = None) -> "EnvironmentPlan":
        """With the flags of these projects, and of these names."""
        rows = [row for row in self.flags if row.flag.project_id in projects]
        return replace(self, flags=[row for row in rows if flags is None or row.flag.name in flags])


def find_own_projects(environment: str, caller: Caller) -> list[str]:
    """The projects in which the caller may change anything there. Raises NoAccess without one. One query."""
    found = Project.objects.active().readable_by(caller).filter(environments=environment)
    own = [
        project
        for project in found.values_list("pk", flat=True)
        if any(caller.can(each, project=project, environment=environment) for each in IN_ENVIRONMENT)
    ]
    if not own:
        raise missing(IN_ENVIRONMENT)
    return own


@consistent_reads()
def plan_environment(
    environment: str, at: datetime, *, projects: Collection[str] = (), lock: bool = False, caller: Caller
) -> EnvironmentPlan:
    """``projects`` narrows it; empty: all in which the caller may change anything there.

    About ten queries, and six for each flag that differs.

    With ``lock``, the segments to restore cannot change until the end of the transaction. Raises NoAccess, Conflict for
    an unknown moment, InvalidOperation for too many flags.
    """
    own = find_own_projects(environment, caller)
    check_known(at)
    chosen = [project for project in own if project in projects or not projects]
    names = list_changed(chosen, environment, at, PRESENT)
    if len(names) > MAX_CHANGED:
        raise InvalidOperation(f"{len(names):,} flags have changed since then{TOO_MANY}")
    timeline = read_timeline(names, since=at)
    flags = {flag.name: flag for flag in Flag.objects.filter(name__in=names, project__in=chosen)}
    active = [flag for flag in flags.values() if not flag.is_archived]
    found = [each for flag in active if (each := _compare(timeline, flag, environment, at))]
    if len(found) > MAX_FLAGS:
        raise InvalidOperation(f"{len(found):,} flags differ from then{TOO_MANY}")
    unused = {project: find_unused_then(project, at) for project in {each[0].project_id for each in found}}
    rows = [
        _plan(*each, environment in unused[each[0].project_id], at, lock=lock, caller=caller)
        for each in sorted(found, key=lambda each: (each[0].project_id, each[0].name))
    ]
    absent = {name: flags.get(name) for name in names if name not in {flag.name for flag in active}}
    gone = (_find_gone(timeline, name, flag, environment, at) for name, flag in absent.items())
    return EnvironmentPlan(
        environment,
        at,
        [row for row in rows if isinstance(row, FlagBack)],
        [
            *(row for row in rows if isinstance(row, KeptOut)),
            *(row for row in gone if row and row.project in chosen),
        ],
        find_changed_conditions(_find_used_segments(timeline, chosen, environment, at), at),
    )


def _find_gone(
    timeline: Timeline, name: str, flag: Flag | None, environment: str, at: datetime
) -> KeptOut | None:
    """A flag that was on then, and is archived, or no longer in these projects."""
    then = timeline.read_state(name, at)
    if then is None or then["archived"] or not by_environment(then).get(environment, NOTHING)["enabled"]:
        return None
    reason = "has been archived since" if flag else "has been deleted or moved since"
    return KeptOut(then["project"], name, reason)


def _compare(
    timeline: Timeline, flag: Flag, environment: str, at: datetime
) -> tuple[Flag, FlagState, FlagState | None, FlagPart] | None:
    """The flag now and then (None: it did not exist), and its part in the environment; None if that is the same.

    A flag that did not exist, or was archived, answered nothing then: it is only turned off.
    """
    now = timeline.read_state(flag.name, PRESENT)
    then = timeline.read_state(flag.name, at, flag_id=flag.pk)
    is_new = then is None or then["archived"]
    if now is None:
        return None
    compared: Any = then
    if is_new:
        compared = {**now, "environments": [{**place, "enabled": False} for place in now["environments"]]}
    parts = find_differing_parts(now, compared)
    part = next((part for part in parts if (part.kind, part.environment) == (ENVIRONMENT, environment)), None)
    return (flag, now, then, part) if part else None


def _plan(
    flag: Flag,
    now: FlagState,
    then: FlagState | None,
    part: FlagPart,
    is_unused: bool,
    at: datetime,
    *,
    lock: bool,
    caller: Caller,
) -> FlagBack | KeptOut:
    place = flag.project_id, flag.name
    if then and then["project"] != flag.project_id and not caller.can_read(then["project"]):
        return KeptOut(*place, "has been moved here since")
    if is_unused:
        return KeptOut(*place, f"is of a project that did not use {part.environment} then")
    [planned] = plan_parts(flag, [part], at, lock=lock, caller=caller)
    if planned.missing:
        scope = {"project": flag.project_id, "environment": part.environment}
        return KeptOut(*place, f"stays: {missing(planned.missing[:1], **scope).message}".rstrip("."))
    if planned.problems:
        return KeptOut(
            *place, f"cannot be restored: {choices(problem.message for problem in planned.problems)}"
        )
    return FlagBack(flag, now, planned)


def _find_used_segments(
    timeline: Timeline, projects: Collection[str], environment: str, at: datetime
) -> set[int]:
    """Those that flags of these projects use there, now or then. Others may have their names at the other moment."""
    return {
        segment
        for moment in (PRESENT, at)
        for flag in timeline.read_definitions(timeline.asked, environment, moment).flags
        if flag["project"] in projects
        for strategy in flag["strategies"]
        for segment in strategy["segments"]
    }


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
