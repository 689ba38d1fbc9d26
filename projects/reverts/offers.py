"""Finds changes that lists of changes offer to revert, and the URL of the page that does it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.permissions import Permission
from projects.history.changes import GroupedChange
from projects.models import Flag
from projects.reverts.change_plan import BESIDE, OF_FLAGS, OF_SUBJECTS, REVERTIBLE, may_change


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
    """Finds which of these changes (their events, by any key) pages offer to revert; the preview checks the details.

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
"""The permission that taking back an event of this type needs; all others of flags need that to update the flag."""


def _may_revert(event: AuditEvent, caller: Caller) -> bool:
    if event.type in OF_SUBJECTS:
        return may_change(event, caller)
    permission = _BACK.get(event.type, Permission.UPDATE_FEATURE)
    return caller.can(permission, project=event.project, environment=event.environment)


def are_revertible(types: Sequence[str]) -> bool:
    """Whether a change with events of these types can be reverted, as far as the types tell."""
    return bool(REVERTIBLE.intersection(types)) and REVERTIBLE.union(BESIDE).issuperset(types)
