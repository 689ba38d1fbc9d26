"""Plans reverting the parts of a flag: the permissions for each, and the obstacles.

It serves two questions: how has a flag changed since a version (``version_plan``), and what did a change do
(``change_plan``)?
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Problem
from flagadmin.core.unreadable_values import UnreadableValue
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition
from projects.drafts import Draft, FlagEdit, find_enabled_places
from projects.flags.actions import type_problems
from projects.flags.dependencies.actions import parents_problems
from projects.history.diff import DEPENDENCIES, DETAILS, ENVIRONMENT, FlagPart
from projects.history.field_changes import FieldChange, list_part_changes
from projects.models import Environment, Flag, ProjectEnvironment, Segment
from projects.project_scope import hold_segments
from projects.rules import Limits
from projects.states import (
    IN_ENVIRONMENT,
    FlagState,
    by_environment,
    changes_there,
    permissions,
    with_environments,
)
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.rules import strategy_problems

PERMISSIONS = (Permission.UPDATE_FEATURE, Permission.UPDATE_FEATURE_DEPENDENCY, *IN_ENVIRONMENT)
"""A revert needs the permissions for its changes."""


class Note(Problem):
    """A part that cannot be restored exactly, which does not prevent a revert."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part that would change.

    ``problems`` prevent restoring it, ``missing`` are permissions that the caller lacks, and ``notes`` are inexact
    parts.
    """

    part: FlagPart
    problems: Sequence[Problem]
    missing: Sequence[Permission]
    notes: Sequence[Problem]


def name_segments(planned: Iterable[PlannedPart]) -> dict[int, str]:
    """The names of the segments in these parts, before or after, by id. One query."""
    used = {segment for each in planned for segment in each.part.used_segments()}
    return Segment.objects.names(used)


def list_reasons(problems: Iterable[Problem]) -> list[str]:
    """The problems as sentences for a page."""
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
    at: datetime,
    *,
    lock: bool = False,
    caller: Caller,
) -> list[PlannedPart]:
    """Plans each of these parts, as they were at a moment.

    With ``lock``, the segments to restore cannot change until the end of the transaction.
    """
    parts = list(parts)
    if lock:
        hold_segments({segment for part in parts for segment in part.used_segments()})
    check = _Check(flag, at, caller)
    return [check.plan(part) for part in parts]


def format_moment(at: datetime) -> str:
    """``21 Nov 2026, 14:03:05 UTC``"""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M:%S} UTC"


class _Check:
    """Checks the parts of one flag. Reads the possible names once, on first use."""

    def __init__(self, flag: Flag, at: datetime, caller: Caller) -> None:
        self.flag, self.at, self.caller = flag, at, caller
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
        # Values that have become illegal remain in effect where they are in use.
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
        """Notes each of these names (with paths) that now refers to another flag or environment."""
        named = {f"{field}__in": list(paths)}
        events = AuditEvent.objects.filter(type=kind.value, created_at__gt=self.at, **named)
        thing = {"feature": "flag"}.get(field, field)
        for name in sorted(set(events.values_list(field, flat=True))):
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


def _list_needed_permissions(part: FlagPart) -> list[Permission]:
    """The permissions that changing the part needs, in the environment if it has one."""
    if part.kind == ENVIRONMENT:
        before: Any = part.before
        after: Any = part.after
        return permissions(changes_there(part.environment, before, after))
    return [Permission.UPDATE_FEATURE if part.kind == DETAILS else Permission.UPDATE_FEATURE_DEPENDENCY]


def restore_parts(before: FlagState, parts: Sequence[FlagPart]) -> FlagState:
    """The flag's version with these parts restored."""
    places: Any = by_environment(before) | {
        part.environment: part.after for part in parts if part.environment
    }
    shared = {key: value for part in parts if not part.environment for key, value in part.after.items()}
    return with_environments(before, places, **shared)


# On pages ---------------------------------------------------------------------------------------------------

_LABELS = {DEPENDENCIES: "Dependencies", DETAILS: "Description and settings"}


class ShownPart(NamedTuple):
    """``notes`` are inexact parts. ``label`` is "" for objects without parts, such as a segment."""

    label: str
    changes: Sequence[FieldChange]
    notes: Sequence[str] = ()


def show_part(planned: PlannedPart, segments: Mapping[int, str]) -> ShownPart:
    """``segments`` are names by id."""
    part = planned.part
    notes = [f"Note: {note.message}." for note in planned.notes]
    return ShownPart(part.environment or _LABELS[part.kind], list_part_changes(part, segments), notes)


def list_part_edits(flag: Flag, parts: Iterable[FlagPart]) -> Iterator[FlagEdit]:
    """The edits of writing these parts, in the order of the environments."""
    changes: dict[str, dict[str, Any]] = {}
    common: dict[str, Any] = {}
    for part in parts:
        if part.kind == ENVIRONMENT:
            changes[part.environment] = dict(part.after)
        elif part.kind == DEPENDENCIES:
            common |= part.after
    if common:
        changes |= {place: changes.get(place, {}) for _, place in find_enabled_places([flag])}
    for place in Environment.objects.names():
        if place in changes:
            draft = Draft(flag.name, changes[place] | common)
            yield FlagEdit(flag.project_id, flag.name, place, draft)
