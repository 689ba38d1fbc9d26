"""Creates, changes and deletes segments.

Changing a segment of a project locks the project and requires its permission. Changing a global segment requires a root
permission, and locks the segment and the projects that refuse changes.

What the list of a segment weighs in the answers to SDKs.

Segments as audit events have them, and the way back to whole lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db import connection
from django.db.models import F

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import change_once, transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    Conflict,
    NameExists,
    NotFound,
    ValidationError,
    check_problems,
    choices,
    format_size,
)
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from playground.engine.definitions import ConstraintDefinition
from projects.access import check_project, lock_refusing_projects
from projects.definitions import read_segments
from projects.models import Environment, Flag, FlagEnvironment, Segment, Strategy
from projects.project_scope import check_scope, lock_scope, name_is_free
from projects.rules import Limits
from projects.segments.lists import (
    DEFAULT_FIELD,
    EMPTY,
    HEAVY,
    OPERATOR,
    Difference,
    SentList,
    change_documents,
    combine,
    cut_lists,
    find_list,
    is_cut,
    may_be_list,
)
from projects.segments.rules import segment_problems, typed_problems
from projects.strategies.constraint_rules import make_constraint
from projects.strategies.known_names import read_legal_values
from projects.used_by.queries import HIDDEN_PLACE, describe_uses, find_default_strategies, find_planned

OWN_PROJECT = Permission.UPDATE_PROJECT_SEGMENT


@transactional
def create_segment(values: Mapping[str, Any], *, caller: Caller) -> Segment:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    segment = Segment(**values, created_by=caller.name)
    check_may_create(caller, segment.project_id)
    if segment.project_id:
        check_project(caller, segment.project_id)
    lock_scope(segment.project_id, caller=caller)
    check_segment(segment)
    with name_is_free(_describe_name_exists(segment)):
        segment.save(force_insert=True)
    record(_make_event(EventType.SEGMENT_CREATED, segment, after=event_document(segment)), actor=caller)
    return segment


@transactional
def update_segment(
    segment_id: int, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Segment:
    """Changes the given model fields.

    Raises NotFound, NoAccess, EditConflict, ValidationError, NameExists.
    """
    target = changes.get("project_id")
    if target and target != access_segment_with(caller, segment_id, Permission.UPDATE_SEGMENT).project_id:
        check_scope(caller, Permission.UPDATE_SEGMENT, OWN_PROJECT, target)
        check_project(caller, target)
    segment = access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT, target=target)
    stored, old_project = segment.document(), segment.project_id
    check_expected(expected, stored)
    for key, value in changes.items():
        setattr(segment, key, value)
    check_update(segment, old_project, caller=caller)
    before, after = change_documents(stored, segment.document())
    event = _make_event(EventType.SEGMENT_UPDATED, segment, before=before, after=after)
    if before != after:
        foresee(
            [event],
            KnownChange(segments={segment.pk: {"name": segment.name, "constraints": segment.constraints}}),
        )
    with name_is_free(_describe_name_exists(segment)):
        segment.save()
    record_change(event, actor=caller)
    return segment


@transactional
def update_list(
    segment_id: int, sent: SentList, *, mode: str, expected: Expected = None, caller: Caller
) -> tuple[Segment, Difference]:
    """Replaces the list of a segment, adds to it or removes from it (``mode``).

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    segment = access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    constraints, difference = change_list(segment.constraints, sent, mode)
    change_once()
    return update_segment(
        segment_id, {"constraints": constraints}, expected=expected, caller=caller
    ), difference


def change_list(
    stored: Sequence[ConstraintDefinition], sent: SentList, mode: str
) -> tuple[list[ConstraintDefinition], Difference]:
    """The constraints with the changed list, and how it differs. Raises ValidationError if they can have no list."""
    if not may_be_list(stored):
        raise ValidationError.at(
            "constraints[0].operator", f"must be {OPERATOR} for a list, not {stored[0]['operator']}"
        )
    new: ConstraintDefinition = {
        "contextName": sent.field or DEFAULT_FIELD,
        "operator": OPERATOR,
        "values": [],
        "inverted": False,
        "caseInsensitive": False,
    }
    first = stored[0] if stored else new
    values = combine(first["values"], sent.values, mode)
    if not values:
        raise ValidationError.at("values", EMPTY)
    constraints: list[ConstraintDefinition] = [{**first, "values": list(values)}, *stored[1:]]
    return constraints, Difference.of(first["values"], values)


def check_typed(constraints: Sequence[Any], stored: Sequence[ConstraintDefinition] = ()) -> None:
    """Raises ValidationError if more values were entered than can be typed. A list that stays as it was is allowed."""
    made = [make_constraint(constraint) for constraint in constraints]
    check_problems(typed_problems(made, stored, Limits.from_settings()))


def check_update(segment: Segment, old_project: str | None, *, caller: Caller) -> None:
    """Normalizes a changed segment. Raises the errors of storing it: NoAccess, ValidationError, NameExists."""
    if segment.project_id != old_project:
        _check_move(segment, caller)
    check_segment(segment)
    if Segment.objects.filter(name=segment.name).exclude(pk=segment.pk).exists():
        raise NameExists(_describe_name_exists(segment))


def _describe_name_exists(segment: Segment) -> str:
    return f"A segment named {segment.name} already exists."


def _check_move(segment: Segment, caller: Caller) -> None:
    """Checks a move to another project or to global. The caller needs the permission in the new project.

    Raises NoAccess, and ValidationError if strategies of other projects use the segment.
    """
    check_scope(caller, Permission.UPDATE_SEGMENT, OWN_PROJECT, segment.project_id)
    if segment.project_id is None:
        return
    flags = Flag.objects.filter(strategies__segments=segment).exclude(project_id=segment.project_id)
    defaults = find_default_strategies(segment.pk).exclude(project_id=segment.project_id)
    if projects := {row for rows in (flags, defaults) for row in rows.values_list("project_id", flat=True)}:
        named = choices(filter(caller.can_read, projects)) or "ones that you cannot see"
        raise ValidationError.at("project", f"the segment is used by strategies in other projects: {named}")
    planned = find_planned({"segments": [segment.pk]})
    if others := [use for use in planned if use.project != segment.project_id]:
        seen = [use.words for use in others if use.project is None or caller.can_read(use.project)]
        raise ValidationError.at(
            "project", f"the segment is used outside this project {choices(seen) or HIDDEN_PLACE}"
        )


@transactional
def delete_segment(segment_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a segment. Raises NotFound, NoAccess, EditConflict, and Conflict if strategies use it."""
    segment = access_segment_for_update(caller, segment_id, Permission.DELETE_SEGMENT)
    before = segment.document()
    check_expected(expected, before)
    check_segment_is_unused(segment, caller)
    record(_make_event(EventType.SEGMENT_DELETED, segment, before=cut_lists(before)), actor=caller)
    segment.delete()


def check_segment_is_unused(segment: Segment, caller: Caller | None = None) -> None:
    """Raises Conflict with the flags, default strategies and release plans that use the segment."""
    strategies, defaults = Strategy.objects.filter(segments=segment), find_default_strategies(segment.pk)
    if uses := describe_uses(strategies, defaults, find_planned({"segments": [segment.pk]}), caller=caller):
        raise Conflict(f"Segment {segment.name} is in use {uses}. Remove it there first.")


def list_enabled_users(segment: Segment, caller: Caller) -> list[tuple[str, str, str]]:
    """(project, flag, environment) in which readable enabled flags use the segment."""
    rows = FlagEnvironment.objects.filter(
        flag__in=Flag.objects.active().readable_by(caller).filter(strategies__segments=segment), enabled=True
    )
    rows = rows.filter(
        environment_id=F("flag__strategies__environment_id"), flag__strategies__segments=segment
    )
    return list(rows.values_list("flag__project_id", "flag__name", "environment_id").distinct())


def access_segment(caller: Caller, segment_id: int) -> Segment:
    """A segment that the caller may read. Raises NotFound."""
    segment = Segment.objects.readable_by(caller).filter(pk=segment_id).first()
    if segment is None:
        raise _no_segment(segment_id)
    return segment


def check_may_create(caller: Caller, project_id: str | None) -> None:
    """Raises NoAccess if the caller may not create segments in the project (None: global ones)."""
    check_scope(caller, Permission.CREATE_SEGMENT, OWN_PROJECT, project_id)


def access_segment_with(caller: Caller, segment_id: int, permission: Permission) -> Segment:
    """A segment for which the caller has the permission. Raises NotFound, NoAccess."""
    segment = access_segment(caller, segment_id)
    check_scope(caller, permission, OWN_PROJECT, segment.project_id)
    return segment


def access_segment_for_update(
    caller: Caller, segment_id: int, permission: Permission, *, target: str | None = None
) -> Segment:
    """The segment, locked with its project and the project it moves to (``target``).

    Raises NotFound, NoAccess.

    The lock conflicts with that of ``hold_segments``, so that no strategy can start using the segment before
    the transaction ends.
    """
    segment_seen = access_segment_with(caller, segment_id, permission)
    if segment_seen.project_id or target:
        lock_scope(segment_seen.project_id, target, caller=caller)
    else:
        users = Flag.objects.active().filter(strategies__segments=segment_id)
        lock_refusing_projects(users, caller=caller)
    rows = Segment.objects.select_for_update(of=("self",))
    segment = rows.filter(pk=segment_id, project_id=segment_seen.project_id).first()
    if segment is None:
        raise _no_segment(segment_id)
    return segment


def check_segment(segment: Segment) -> None:
    """Normalizes the constraints and validates the segment. Raises ValidationError with every problem.

    Strategies of every project can use a global segment, so only legal values of global context fields apply
    to it.
    """
    segment.constraints = [make_constraint(constraint) for constraint in segment.constraints]
    legal = read_legal_values(segment.project_id)
    check_values(segment_problems(segment, legal_values=legal, limits=Limits.from_settings()))


def _no_segment(segment_id: int) -> NotFound:
    return NotFound(f"Segment with id {segment_id} not found.")


def _make_event(kind: EventType, segment: Segment, *, before: Any = None, after: Any = None) -> Event:
    return Event(type=kind, project=segment.project_id, subject=segment.name, before=before, after=after)


@dataclass(frozen=True, slots=True)
class Weight:
    """``size``: bytes of the segment in one answer. ``environments``: those whose answers have it, in their order.

    ``strategies``: those that use it. SDKs that do not know segments get it with each of them.
    """

    size: int
    environments: Sequence[str]
    strategies: int
    values: int

    @property
    def total(self) -> int:
        return self.size * len(self.environments)

    @property
    def warning(self) -> str:
        """Empty for a list of up to HEAVY values."""
        if self.values <= HEAVY:
            return ""
        return (
            f"Each SDK downloads all {self.values:,} values after each change ({format_size(self.size)}). "
            f"Above {HEAVY:,}, consider a property of the user, such as a plan, in place of a list of users."
        )


def weigh(segment: Segment, constraints: Sequence[ConstraintDefinition]) -> Weight:
    """The weight of the segment with these constraints. Two queries."""
    strategies = Strategy.objects.filter(segments=segment.pk or 0, flag__archived_at=None)
    used = list(strategies.values_list("environment_id", flat=True))
    names = [name for name in Environment.objects.names() if name in used]
    definition = {"id": segment.pk or 0, "name": segment.name, "constraints": constraints}
    return Weight(len(orjson.dumps(definition)), names, len(used), len(find_list(constraints)))


def event_document(segment: Segment) -> Document:
    return cut_lists(segment.document())


def restore_lists(document: Document, at: datetime) -> Document | None:
    """The document of an event with whole lists, from the version of this moment. None if there is none."""
    if not is_cut(document):
        return document
    with connection.cursor() as cursor:
        past = read_segments(cursor, [document["id"]], at).get(document["id"])
    return None if past is None else {**document, "constraints": past["constraints"]}
