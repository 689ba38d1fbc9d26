"""Offers to revert changes: in lists of changes, and in the message about the request's own change.

``includes/messages.html`` shows the messages with their Undo buttons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.logs import request_id
from groups.console import ActionPage, Caller, Permission
from projects.history.changes import GroupedChange, change_of
from projects.models import Flag
from projects.reverts.change_plan import BESIDE, MAX_FLAGS, OF_FLAGS, OF_SUBJECTS, REVERTIBLE, may_change


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
    events = list(change_of(newest, caller=caller)[: MAX_FLAGS * 10])
    return newest if find_offered({0: events}, caller) else None


class UndoableAction(ActionPage):
    """A button whose message has an Undo button, also when htmx replaces only a part of the page."""

    def tell(self, done: str) -> None:
        if done and ("HX-Request" not in self.request.headers or _find_undoable(self.caller)):
            tell_done(self.request, done, caller=self.caller)
