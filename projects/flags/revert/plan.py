"""What reverting a flag to one of its versions would change, what it needs, and what cannot be restored."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError, check_problems, choices
from flagadmin.core.unreadable_values import UnreadableValue
from groups.access import Caller
from groups.permissions import Permission
from playground.engine.definitions import StrategyDefinition
from projects.flags.actions import type_problems
from projects.flags.dependencies.actions import parents_problems
from projects.history.flag_parts import (
    DEPENDENCIES,
    DETAILS,
    ENVIRONMENT,
    FlagPart,
    differing_parts,
    in_environments,
)
from projects.history.queries import readable_events
from projects.history.versions import present_version, version_of
from projects.limits import Limits
from projects.models import Environment, Flag, ProjectEnvironment, Segment
from projects.models.strategies import make_time_ordered_id
from projects.project_scope import hold_segments
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.rules import strategy_problems

Document = dict[str, Any]
PERMISSIONS = (
    Permission.UPDATE_FEATURE,
    Permission.UPDATE_FEATURE_DEPENDENCY,
    Permission.UPDATE_FEATURE_ENVIRONMENT,
    Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
    Permission.CREATE_FEATURE_STRATEGY,
    Permission.UPDATE_FEATURE_STRATEGY,
    Permission.DELETE_FEATURE_STRATEGY,
)
"""A revert needs those of what it changes."""


@dataclass(frozen=True, slots=True)
class Target:
    """The version to revert to: what the flag was after one of its events, or at a moment."""

    at: datetime
    event: int | None = None

    def events_since(self, events: "QuerySet[AuditEvent]") -> "QuerySet[AuditEvent]":
        """Those of the events that are later than the version."""
        return events.filter(pk__gt=self.event) if self.event else events.filter(created_at__gt=self.at)


class Note(Problem):
    """What will not be quite what it was, and does not prevent a revert."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which parts to revert. ``environments`` None: all."""

    environments: frozenset[str] | None = None
    dependencies: bool = True
    details: bool = True

    def includes(self, part: FlagPart) -> bool:
        if part.kind == ENVIRONMENT:
            return self.environments is None or part.environment in self.environments
        return self.dependencies if part.kind == DEPENDENCIES else self.details


EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part that would change.

    ``problems`` are why it cannot be restored, ``missing`` the permissions that the caller lacks, and ``notes`` what
    will not be quite what it was.
    """

    part: FlagPart
    problems: Sequence[Problem]
    missing: Sequence[Permission]
    notes: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """``before`` is the flag's present version; ``parts`` are all that differ from the one to revert to."""

    before: Document
    parts: Sequence[PlannedPart]


def may_revert(caller: Caller, project: str) -> bool:
    """Whether the caller may change any part of the project's flags in any environment."""
    places = ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True)
    return any(
        caller.can(permission, project=project, environment=environment)
        for environment in (None, *places)
        for permission in PERMISSIONS
    )


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
    before = present_version(flag)
    then = version_of(flag, event=target.event) if target.event else version_of(flag, at=target.at)
    moment = format_moment(target.at)
    is_older = target.event is None and flag.created_at > target.at
    if then is None or is_older or not caller.can_read(then["project"]):
        raise NotFound(f"There was no flag {flag.name} on {moment}.")
    if then["archived"]:
        raise Conflict(f"{flag.name} was archived on {moment}. Choose a version in which it was active.")
    unused = _find_unused_then(flag.project_id, target)
    parts = [part for part in differing_parts(before, then) if part.environment not in unused]
    return plan_parts(flag, before, parts, target, lock=lock, caller=caller)


def plan_parts(
    flag: Flag,
    before: Document,
    parts: Iterable[FlagPart],
    target: Target,
    *,
    lock: bool = False,
    caller: Caller,
) -> RevertPlan:
    """What each of these parts needs. ``before`` is the flag's present version."""
    parts = [_add_ids(part) for part in parts]
    if lock:
        hold_segments({segment for part in parts for segment in part.used_segments()})
    check = _Check(flag, target, caller)
    return RevertPlan(before, [check.plan(part) for part in parts])


def _find_unused_then(project: str, target: Target) -> set[str]:
    """The environments that the project uses now and did not use then: what flags have there stays."""
    kinds = (E.PROJECT_ENVIRONMENT_ADDED.value, E.PROJECT_ENVIRONMENT_REMOVED.value)
    events = AuditEvent.objects.filter(project=project, type__in=kinds).order_by("id")
    first: dict[str | None, str] = {}
    for environment, kind in target.events_since(events).values_list("environment", "type"):
        first.setdefault(environment, kind)
    return {name for name, kind in first.items() if name and kind == E.PROJECT_ENVIRONMENT_ADDED}


def format_moment(at: datetime) -> str:
    """``21 Nov 2026, 14:03:05 UTC``"""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M:%S} UTC"


def _add_ids(part: FlagPart) -> FlagPart:
    """The part with an id for each strategy: its own, if it is known, else that of an equal one, else a new one."""
    if part.kind != ENVIRONMENT:
        return part
    after = list(part.after["strategies"])
    kept_ids = {each["id"] for each in after}
    free = [each for each in part.before["strategies"] if each["id"] not in kept_ids]
    for index, strategy in enumerate(after):
        if not _is_id(strategy["id"]):
            equal = [each for each in free if each | {"id": ""} == strategy | {"id": ""}]
            free = [each for each in free if each not in equal[:1]]
            after[index] = strategy | {"id": equal[0]["id"] if equal else str(make_time_ordered_id())}
    return part._replace(after=part.after | {"strategies": after})


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


class _Check:
    """What the parts of one flag need. Reads the names that they may use once, when they are needed."""

    def __init__(self, flag: Flag, target: Target, caller: Caller) -> None:
        self.flag, self.target, self.caller = flag, target, caller
        places = ProjectEnvironment.objects.filter(project=flag.project_id)
        self.environments = set(places.values_list("environment_id", flat=True))
        self._known: KnownNames | None = None

    def plan(self, part: FlagPart) -> PlannedPart:
        check = {
            ENVIRONMENT: self.environment_problems,
            DEPENDENCIES: self.parent_problems,
            DETAILS: self.detail_problems,
        }[part.kind]
        scope = {"project": self.flag.project_id, "environment": part.environment or None}
        needed = _list_needed_permissions(part)
        missing = [permission for permission in needed if not self.caller.can(permission, **scope)]
        problems = list(check(part))
        notes = [problem for problem in problems if isinstance(problem, Note)]
        return PlannedPart(part, [problem for problem in problems if problem not in notes], missing, notes)

    def environment_problems(self, part: FlagPart) -> Iterator[Problem]:
        path = f"environments.{part.environment}"
        if part.environment not in self.environments:
            exists = Environment.objects.filter(name=part.environment).exists()
            why = f"is no longer used by project {self.flag.project_id}" if exists else "has been deleted"
            yield Problem(path, f"environment {part.environment} {why}")
            return
        yield from self.created_again(E.ENVIRONMENT_CREATED, "environment", {part.environment: path})
        stored = {stored_strategy["id"]: stored_strategy for stored_strategy in part.before["strategies"]}
        limits = Limits.from_settings()
        if len(part.after["strategies"]) > max(limits.strategies, len(stored)):
            yield Problem(f"{path}.strategies", f"a flag must have at most {limits.strategies} strategies")
        for index, strategy in enumerate(part.after["strategies"]):
            if {**strategy, "sortOrder": 0} != {**stored.get(strategy["id"], {}), "sortOrder": 0}:
                yield from self.strategy_problems(strategy, f"{path}.strategies[{index}]")

    def strategy_problems(self, strategy: StrategyDefinition, path: str) -> Iterator[Problem]:
        known = self._known = self._known or load_known_names(self.flag.project_id)
        missing = [segment for segment in strategy["segments"] if segment not in known.segments]
        for segment in missing:
            index = strategy["segments"].index(segment)
            yield Problem(f"{path}.segments[{index}]", _describe_gone_segment(segment, self.flag.project_id))
        known = replace(known, segments={**known.segments, **dict.fromkeys(missing, "")})
        limits = Limits.from_settings()
        # Values that have become illegal since stay in force wherever they are in use.
        lenient = replace(known, legal_values={})
        faults = list(strategy_problems(strategy, path, known_names=lenient, limits=limits))
        for problem in strategy_problems(strategy, path, known_names=known, limits=limits):
            is_old = problem not in faults or isinstance(problem, UnreadableValue)
            yield Note(problem.path, problem.message) if is_old else problem

    def parent_problems(self, part: FlagPart) -> Iterator[Problem]:
        parents = [parent["feature"] for parent in part.after["dependencies"]]
        yield from parents_problems(self.flag, parents, Flag.objects.readable_by(self.caller), "dependencies")
        paths = {name: f"dependencies[{index}]" for index, name in enumerate(parents)}
        yield from self.created_again(E.FEATURE_CREATED, "feature", paths)

    def created_again(self, kind: E, field: str, paths: Mapping[str, str]) -> Iterator[Problem]:
        """A note on each of these names (with paths) that now means another flag or environment than then."""
        events = AuditEvent.objects.filter(type=kind.value, **{f"{field}__in": list(paths)})
        thing = {"feature": "flag"}.get(field, field)
        for name in sorted(set(self.target.events_since(events).values_list(field, flat=True))):
            yield Note(paths[name], f"{thing} {name} has been deleted and created again since")

    def detail_problems(self, part: FlagPart) -> Iterator[Problem]:
        if part.before["type"] != part.after["type"]:
            yield from type_problems(part.after["type"])


def _describe_gone_segment(segment: int, project: str) -> str:
    name = Segment.objects.filter(pk=segment).values_list("name", flat=True).first()
    if name is not None:
        return f"segment {name} is not available in project {project}"
    deleted = AuditEvent.objects.filter(type=E.SEGMENT_DELETED.value, before__id=segment)
    names = deleted.values_list("before__name", flat=True)
    return f"segment {names.first() or segment} has been deleted"


def _list_needed_permissions(part: FlagPart) -> Iterator[Permission]:
    """The permissions that changing the part needs, in the environment if it has one."""
    if part.kind == DETAILS:
        yield Permission.UPDATE_FEATURE
    elif part.kind == DEPENDENCIES:
        yield Permission.UPDATE_FEATURE_DEPENDENCY
    else:
        if part.before["enabled"] != part.after["enabled"]:
            yield Permission.UPDATE_FEATURE_ENVIRONMENT
        if part.before["variants"] != part.after["variants"]:
            yield Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
        old, new = (
            {strategy["id"]: strategy for strategy in side["strategies"]}
            for side in (part.before, part.after)
        )
        if new.keys() - old.keys():
            yield Permission.CREATE_FEATURE_STRATEGY
        if old.keys() - new.keys():
            yield Permission.DELETE_FEATURE_STRATEGY
        if any(old[key] != new[key] for key in old.keys() & new.keys()):
            yield Permission.UPDATE_FEATURE_STRATEGY


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


def restore_parts(before: Document, parts: Sequence[FlagPart]) -> Document:
    """The flag's version once these parts are as they were."""
    places = in_environments(before)
    places |= {part.environment: part.after for part in parts if part.environment}
    shared = {key: value for part in parts if not part.environment for key, value in part.after.items()}
    return {**before, **shared, "environments": [{"name": name, **places[name]} for name in sorted(places)]}
