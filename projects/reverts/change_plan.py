"""Plans reverting a change: the flags and other subjects to restore, and the obstacles.

A change is everything that one actor did with one request. Reverting it keeps later changes; if the same part has
changed again, it is refused.

Offers to revert changes: in lists of changes, and in the message about the request's own change.

``includes/messages.html`` shows the messages with their Undo buttons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, NotFound, Problem
from flagadmin.core.http.logs import request_id
from groups.access import Caller, Permission, missing
from groups.console import ActionPage
from projects.flags.payloads.actions import schema_document
from projects.history.changes import GroupedChange, change_of
from projects.history.definitions_at import find_versions_around, just_before
from projects.history.diff import find_differing_parts
from projects.history.queries import readable_events
from projects.models import Flag, Segment, StrategyType
from projects.reverts.parts import PlannedPart, format_moment, plan_parts
from projects.segments.actions import restore_lists
from projects.segments.lists import cut_lists, drop_change
from projects.states import apply, changes, describe, is_changed_again, permissions, without

MAX_FLAGS = 100
"""A change of more flags is not reverted at once."""
MAX_EVENTS = 1_000
"""Nor is one with more events."""

_TAGS = (E.FEATURE_TAGGED, E.FEATURE_UNTAGGED)
_SCHEMA = E.FEATURE_PAYLOAD_SCHEMA_UPDATED
_VERSIONS = (
    E.FEATURE_METADATA_UPDATED, E.FEATURE_STALE_ON, E.FEATURE_STALE_OFF, E.FEATURE_ARCHIVED, E.FEATURE_REVIVED,
    E.FEATURE_ENVIRONMENT_ENABLED, E.FEATURE_ENVIRONMENT_DISABLED, E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED,
    E.FEATURE_STRATEGY_ADD, E.FEATURE_STRATEGY_UPDATE, E.FEATURE_STRATEGY_REMOVE, E.FEATURE_STRATEGY_ORDER_CHANGED,
    E.FEATURE_DEPENDENCY_ADDED, E.FEATURE_DEPENDENCY_REMOVED, E.FEATURE_REVERTED,
)  # fmt: skip
OF_FLAGS = frozenset(kind.value for kind in (*_TAGS, _SCHEMA, *_VERSIONS))
OF_SUBJECTS = frozenset({E.SEGMENT_UPDATED.value, E.STRATEGY_DEPRECATED.value, E.STRATEGY_REACTIVATED.value})
BESIDE = frozenset({E.EXPECTATION_OVERRIDDEN.value})  # describes a change, but is not one itself
REVERTIBLE = OF_FLAGS | OF_SUBJECTS


@dataclass(slots=True)
class FlagRevert:
    """One flag. ``archival`` is "archive", "revive" or "". ``problems`` prevent it, ``missing`` are refusals.

    ``schema`` is the document of the payload schema to restore, None if it stays.
    """

    name: str
    flag: Flag | None = None
    archival: str = ""
    parts: Sequence[PlannedPart] = ()
    add_tags: list[tuple[str, str]] = field(default_factory=list)
    remove_tags: list[tuple[str, str]] = field(default_factory=list)
    schema: Document | None = None
    problems: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def changes_anything(self) -> bool:
        return bool(self.archival or self.parts or self.add_tags or self.remove_tags or self.schema)


@dataclass(slots=True)
class SubjectRevert:
    """A segment or strategy type: the event to revert, the state before it, and the stored state."""

    event: AuditEvent
    name: str
    before: Any
    now: Mapping[str, Any] | None = None
    problems: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def changes_anything(self) -> bool:
        return self.now is not None and self.now != self.before


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """``event`` is the newest of the change. ``refusal``: why such a change can never be reverted."""

    event: AuditEvent
    flags: Sequence[FlagRevert] = ()
    subjects: Sequence[SubjectRevert] = ()
    refusal: str = ""

    @property
    def rows(self) -> Sequence[FlagRevert | SubjectRevert]:
        return [*self.flags, *self.subjects]

    @property
    def parts(self) -> Sequence[PlannedPart]:
        return [part for flag in self.flags for part in flag.parts]

    @property
    def problems(self) -> list[Problem]:
        return [problem for planned in (*self.rows, *self.parts) for problem in planned.problems]

    @property
    def missing(self) -> list[str]:
        return list(dict.fromkeys(message for row in self.rows for message in row.missing))

    @property
    def changes_anything(self) -> bool:
        return any(row.changes_anything for row in self.rows)


def find_change(caller: Caller, event_id: int, flag: str = "") -> list[AuditEvent]:
    """The events of an event's change, newest first; only those of a flag if it is named. At most one more than are
    reverted at once.

    Raises NotFound.
    """
    event = get_or_404(readable_events(caller), f"Event {event_id} not found.", pk=event_id)
    events = change_of(event, caller=caller)
    listed = list((events.filter(feature=flag) if flag else events)[: MAX_EVENTS + 1])
    if not listed:
        raise NotFound(f"Flag {flag} is not part of this change.")
    return listed


def plan_change(events: Sequence[AuditEvent], *, lock: bool = False, caller: Caller) -> ChangePlan:
    """``events`` belong to one change, or to one flag in it, newest first. A dozen queries for each flag."""
    newest = events[0]
    if refusal := _find_refusal(events):
        return ChangePlan(newest, refusal=refusal)
    by_flag: dict[str, list[AuditEvent]] = {}
    for event in events:
        if event.feature and event.type in OF_FLAGS:
            by_flag.setdefault(event.feature, []).append(event)
    readable = Flag.objects.readable_by(caller).select_related("project").filter(name__in=by_flag)
    flags = {flag.name: flag for flag in readable}
    return ChangePlan(
        newest,
        [_plan_flag(name, flags.get(name), by_flag[name], lock, caller) for name in sorted(by_flag)],
        [_plan_subject(event, caller) for event in events if event.type in OF_SUBJECTS],
    )


def _find_refusal(events: Sequence[AuditEvent]) -> str:
    others = [event for event in events if event.type not in REVERTIBLE | BESIDE]
    if any(event.type in (E.FEATURES_IMPORTED, E.FEATURES_PROMOTED) for event in others):
        return "An import or a promotion is undone on its own page."
    if others:
        return f"This change cannot be reverted: it {make_sentence(others[-1])}."
    if not any(event.type in REVERTIBLE for event in events):
        return "There is nothing to revert."
    if len({event.feature for event in events}) > MAX_FLAGS or len(events) > MAX_EVENTS:
        return (
            f"A change of more than {MAX_FLAGS} flags or with more than {MAX_EVENTS:,} events cannot be reverted at "
            "once. Revert it flag by flag."
        )
    return ""


# Flags ------------------------------------------------------------------------------------------------------


def _plan_flag(
    name: str, flag: Flag | None, events: Sequence[AuditEvent], lock: bool, caller: Caller
) -> FlagRevert:
    row = FlagRevert(name, flag)
    if flag is None or flag.project_id != events[0].project:
        where = "has been deleted" if flag is None else f"is in project {flag.project_id} now"
        row.problems.append(Problem(name, f"{name} {where}"))
        return row
    _plan_tags(row, events, caller)
    _plan_schema(row, [event for event in events if event.type == _SCHEMA], caller)
    versions = [event for event in events if event.type not in (*_TAGS, _SCHEMA)]
    if versions:
        _plan_versions(row, flag, versions, lock, caller)
    return row


def _plan_tags(row: FlagRevert, events: Sequence[AuditEvent], caller: Caller) -> None:
    for event in events:
        if event.type in _TAGS:
            document: Any = event.after or event.before
            tag = (document["type"], document["value"])
            (row.remove_tags if event.type == E.FEATURE_TAGGED else row.add_tags).append(tag)
    if row.add_tags or row.remove_tags:
        _check_permission(row, caller, Permission.UPDATE_FEATURE)


def _plan_schema(row: FlagRevert, events: Sequence[AuditEvent], caller: Caller) -> None:
    if not events or row.flag is None:
        return
    now, before = schema_document(row.flag), events[-1].before
    if now != events[0].after:
        row.problems.append(
            _make_changed_since_problem(row.name, f"the payload schema of {row.name}", events[0])
        )
    elif now != before:
        row.schema = before
        _check_permission(row, caller, Permission.UPDATE_FEATURE)


def _plan_versions(
    row: FlagRevert, flag: Flag, events: Sequence[AuditEvent], lock: bool, caller: Caller
) -> None:
    first, last = events[-1], events[0]
    try:
        now, after, before = find_versions_around(flag, first.created_at, last.created_at)
    except Conflict as unknown:
        row.problems.append(Problem(row.name, str(unknown).rstrip(".")))
        return
    if after is None or before is None:
        row.problems.append(Problem(row.name, f"{row.name} has been created again since"))
        return
    version, changed_again = without(now, after, before)
    conflicts = list(dict.fromkeys(f"{describe(part)} of {row.name}" for part in changed_again))
    archival = [change for change in changes(now, version) if change.part.member == "archived"]
    if archival:
        row.archival = "archive" if version["archived"] else "revive"
        conflicts = conflicts or ([row.name] if now != after else [])
        _check_permission(row, caller, *permissions(archival))
    elif now["archived"] and now != version:
        row.problems.append(Problem(row.name, f"{row.name} is archived"))
        return
    row.problems += [_make_changed_since_problem(row.name, words, last) for words in conflicts]
    if row.archival != "archive":
        parts = find_differing_parts(apply(now, archival), version)
        row.parts = plan_parts(flag, parts, just_before(first.created_at), lock=lock, caller=caller)
    row.missing += [
        missing(part.missing[:1], project=flag.project_id, environment=part.part.environment or None).message
        for part in row.parts
        if part.missing
    ]


def _make_changed_since_problem(name: str, words: str, last: AuditEvent) -> Problem:
    later = AuditEvent.objects.filter(feature=name, pk__gt=last.pk).newest_first().first()
    by = f", by {later.actor_name} on {format_moment(later.created_at)}" if later else ""
    return Problem(name, f"{words} has been changed since{by}")


def _check_permission(row: FlagRevert, caller: Caller, permission: Permission) -> None:
    assert row.flag is not None
    project = row.flag.project_id
    if not caller.can(permission, project=project):
        row.missing.append(missing([permission], project=project).message)


# Segments and strategy types --------------------------------------------------------------------------------


def _plan_subject(event: AuditEvent, caller: Caller) -> SubjectRevert:
    row = SubjectRevert(event, event.subject or "", event.before)
    row.now = _read_stored(event, caller)
    if row.now is None:
        row.problems.append(Problem(row.name, f"{row.name} has been deleted"))
    elif is_changed_again(cut_lists(row.now), drop_change(event.after or {}), event.before):
        later = format_moment(event.created_at)
        row.problems.append(Problem(row.name, f"{row.name} has been changed since {later}"))
    elif event.type == E.SEGMENT_UPDATED:
        row.before = restore_lists(row.before, just_before(event.created_at))
        if row.before is None:
            row.problems.append(Problem(row.name, f"the list of {row.name} before the change is not stored"))
    if not may_change(event, caller):
        row.missing.append(missing([_PERMISSIONS[event.type]], project=event.project).message)
    return row


_PERMISSIONS = {
    E.SEGMENT_UPDATED.value: Permission.UPDATE_SEGMENT,
    E.STRATEGY_DEPRECATED.value: Permission.UPDATE_STRATEGY,
    E.STRATEGY_REACTIVATED.value: Permission.UPDATE_STRATEGY,
}


def _read_stored(event: AuditEvent, caller: Caller) -> Mapping[str, Any] | None:
    after: Mapping[str, Any] = event.after or {}
    if event.type == E.SEGMENT_UPDATED:
        segment = Segment.objects.readable_by(caller).filter(pk=after["id"]).first()
        return segment.document() if segment else None
    kind = StrategyType.objects.filter(pk=event.subject).first()
    return kind.document() if kind else None


def may_change(event: AuditEvent, caller: Caller) -> bool:
    own = event.type == E.SEGMENT_UPDATED and event.project
    return bool(
        (own and caller.can(Permission.UPDATE_PROJECT_SEGMENT, project=event.project))
        or caller.can(_PERMISSIONS[event.type])
    )


def add_reverts(
    changes: Sequence[GroupedChange], *, back: str, flag: str = "", caller: Caller
) -> list[GroupedChange]:
    """``back`` is the page to return to; ``flag`` restricts reverts to one flag. One query."""
    events = {change.event.pk: [change.event, *(row.event for row in change.rows)] for change in changes}
    if flag:
        events = {key: [event for event in rows if event.feature == flag] for key, rows in events.items()}
    possible = find_offered(events, caller)
    query = urlencode({"flag": flag, "next": back} if flag else {"next": back})
    return [
        replace(change, revert_url=f"{reverse('change-revert', args=[change.event.pk])}?{query}")
        if change.event.pk in possible
        else change
        for change in changes
    ]


def find_offered(changes: Mapping[int, Sequence[AuditEvent]], caller: Caller) -> set[int]:
    """The changes, among these (their events, by any key), that pages offer to revert. The preview checks the details.

    One query.
    """
    names = {event.feature for events in changes.values() for event in events if event.feature}
    places = set(Flag.objects.filter(name__in=names).values_list("name", "project_id")) if names else set()
    return {key for key, events in changes.items() if _is_offered(events, places, caller)}


def _is_offered(events: Sequence[AuditEvent], places: set[tuple[str, str]], caller: Caller) -> bool:
    if not are_revertible([event.type for event in events]):
        return False
    flags = [event for event in events if event.type in OF_FLAGS]
    if any((event.feature, event.project) not in places for event in flags):
        return False
    return all(_may_revert(event, caller) for event in events if event.type in REVERTIBLE)


_BACK: Mapping[str, Permission] = {
    E.FEATURE_REVIVED.value: Permission.DELETE_FEATURE,
    E.FEATURE_ENVIRONMENT_ENABLED.value: Permission.UPDATE_FEATURE_ENVIRONMENT,
    E.FEATURE_ENVIRONMENT_DISABLED.value: Permission.UPDATE_FEATURE_ENVIRONMENT,
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED.value: Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
    E.FEATURE_STRATEGY_ADD.value: Permission.DELETE_FEATURE_STRATEGY,
    E.FEATURE_STRATEGY_UPDATE.value: Permission.UPDATE_FEATURE_STRATEGY,
    E.FEATURE_STRATEGY_REMOVE.value: Permission.CREATE_FEATURE_STRATEGY,
    E.FEATURE_STRATEGY_ORDER_CHANGED.value: Permission.UPDATE_FEATURE_STRATEGY,
    E.FEATURE_DEPENDENCY_ADDED.value: Permission.UPDATE_FEATURE_DEPENDENCY,
    E.FEATURE_DEPENDENCY_REMOVED.value: Permission.UPDATE_FEATURE_DEPENDENCY,
}
"""The permission for reverting an event of this type; all other flag events need the one to update the flag."""


def _may_revert(event: AuditEvent, caller: Caller) -> bool:
    if event.type in OF_SUBJECTS:
        return may_change(event, caller)
    permission = _BACK.get(event.type, Permission.UPDATE_FEATURE)
    return caller.can(permission, project=event.project, environment=event.environment)


def are_revertible(types: Sequence[str]) -> bool:
    """Whether a change with events of these types can be reverted, judging by the types alone."""
    return bool(REVERTIBLE.intersection(types)) and REVERTIBLE.union(BESIDE).issuperset(types)


# Messages ---------------------------------------------------------------------------------------------------

UNDO = "undo-"
"""The prefix of the tag of a message with an Undo button; the event to revert follows."""


def tell_done(request: HttpRequest, done: str, *, caller: Caller) -> None:
    """Adds a message, with an Undo button if the request's change can be reverted. Three queries."""
    event = _find_undoable(caller)
    messages.success(request, done, extra_tags=f"{UNDO}{event.pk}" if event else "")


def _find_undoable(caller: Caller) -> AuditEvent | None:
    """The newest event of this request, if its change can be reverted."""
    sent = request_id.get()
    recorded = AuditEvent.objects.filter(request_id=sent, actor_name=caller.name) if sent else None
    newest = recorded and recorded.newest_first().first()
    if not newest or (timezone.now() - newest.created_at).total_seconds() > 60:
        return None
    events = list(change_of(newest, caller=caller)[: MAX_EVENTS + 1])
    return newest if find_offered({0: events}, caller) else None


class UndoableAction(ActionPage):
    """A button whose message has an Undo button, also when htmx replaces only a part of the page."""

    def tell(self, done: str) -> None:
        if done and ("HX-Request" not in self.request.headers or _find_undoable(self.caller)):
            tell_done(self.request, done, caller=self.caller)
