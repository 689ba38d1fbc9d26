"""Plans reverting the parts of a flag: what each needs, and what cannot be restored.

Two questions end here: what has a flag become since a version (``version_plan``), and what did a change do
(``change_plan``)?
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
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
    in_environments,
)
from projects.limits import Limits
from projects.models import Environment, Flag, ProjectEnvironment, Segment
from projects.models.strategies import make_time_ordered_id
from projects.project_scope import hold_segments
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.rules import strategy_problems

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

    def filter_later(self, events: "QuerySet[AuditEvent]") -> "QuerySet[AuditEvent]":
        """Selects the events that are later than the version."""
        return events.filter(pk__gt=self.event) if self.event else events.filter(created_at__gt=self.at)


class Note(Problem):
    """A part that will not be quite what it was, which does not prevent a revert."""


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


def name_segments(planned: Iterable[PlannedPart]) -> dict[int, str]:
    """The names of the segments that these parts use or used, by id. One query."""
    used = {segment for each in planned for segment in each.part.used_segments()}
    return Segment.objects.names(used)


def list_reasons(problems: Iterable[Problem]) -> list[str]:
    """The problems as sentences of a page."""
    return [f"{problem.message[:1].upper()}{problem.message[1:]}." for problem in problems]


def may_revert(caller: Caller, project: str) -> bool:
    """Whether the caller may change any part of the project's flags in any environment."""
    places = ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True)
    return any(
        caller.can(permission, project=project, environment=environment)
        for environment in (None, *places)
        for permission in PERMISSIONS
    )


def plan_parts(
    flag: Flag,
    parts: Iterable[FlagPart],
    target: Target,
    *,
    lock: bool = False,
    caller: Caller,
) -> list[PlannedPart]:
    """Plans what each of these parts needs.

    With ``lock``, the segments that they would restore stay as they are until the end of the transaction.
    """
    parts = [_add_ids(part) for part in parts]
    if lock:
        hold_segments({segment for part in parts for segment in part.used_segments()})
    check = _Check(flag, target, caller)
    return [check.plan(part) for part in parts]


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
    """Checks the needs of the parts of one flag. Reads the names that they may use once, when they are needed."""

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
        for name in sorted(set(self.target.filter_later(events).values_list(field, flat=True))):
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


def restore_parts(before: Document, parts: Sequence[FlagPart]) -> Document:
    """The flag's version once these parts are as they were."""
    places = in_environments(before)
    places |= {part.environment: part.after for part in parts if part.environment}
    shared = {key: value for part in parts if not part.environment for key, value in part.after.items()}
    return {**before, **shared, "environments": [{"name": name, **places[name]} for name in sorted(places)]}
