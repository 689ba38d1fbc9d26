"""Finds changes in the basis of a change, the present differences, and other scheduled changes."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from django.db.models import QuerySet

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound, clip
from groups.models import User
from projects.models import ProjectEnvironment
from releases.changes import KINDS, includes
from releases.models import Change, ChangeRequest
from releases.models.requests import full_name
from releases.targets import Flags, StoredFlags, Target, read_places

MAX_NAME = 200  # characters of the first change that name a request without a title


def make_target(request: ChangeRequest, change: Change, flags: Flags | None = None) -> Target:
    """``flags``: already read for the request, or predicted."""
    flags = flags or read_stored(request, [change])
    return Target(request.project_id, request.environment_id, change.feature, flags)


def read_stored(request: ChangeRequest, changes: Iterable[Change]) -> StoredFlags:
    """The flags of the changes, read on first use."""
    names = {change.feature for change in changes if change.feature}
    return StoredFlags(request.project_id, request.environment_id, names)


def say_change(request: ChangeRequest, change: Change) -> str:
    """Describes the change: `Turn new-cart on`."""
    return KINDS[change.action].say(make_target(request, change), change.payload, change.made_from)


def name_request(request: ChangeRequest) -> str:
    """Its title; without one, its first change: `Turn cart off and 2 more`."""
    if request.title:
        return request.title
    changes = list(request.changes.all())
    return name_for_changes(request, changes[0] if changes else None, len(changes))


def name_for_changes(request: ChangeRequest, first: Change | None, number: int) -> str:
    if first is None:
        return f"Change request {request.pk}"
    more = f" and {number - 1} more" if number > 1 else ""
    return clip(say_change(request, first), MAX_NAME) + more


def read_now(request: ChangeRequest, change: Change, flags: Flags | None = None) -> Any:
    """The part that the change affects, in the form of ``made_from``. Raises NotFound."""
    now = KINDS[change.action].read(make_target(request, change, flags), change.payload)
    return json.loads(json.dumps(now, default=str))


def find_conflicts(request: ChangeRequest, changes: Sequence[Change]) -> list[str]:
    """For each change, why it no longer fits the stored state; "" if it does."""
    stored = read_stored(request, changes)
    return [find_conflict(request, change, stored) for change in changes]


def find_conflicting(changes: Iterable[Change]) -> set[int]:
    """The keys of those of the changes, of any requests, that no longer fit the stored state.

    Reads the flags of each environment once. Load the changes with their ``request``.
    """
    by_environment: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_environment[change.request.environment_id].append(change)
    found = set[int]()
    for environment, listed in by_environment.items():
        names = {change.feature for change in listed if change.feature}
        places = read_places({change.request.project_id for change in listed}, environment, names)
        for change in listed:
            stored = places[change.request.project_id]
            if is_stuck(change, stored, stored):
                found.add(change.pk)
    return found


def is_stuck(change: Change, flags: Flags, stored: StoredFlags | None = None) -> bool:
    """Whether it does not fit these flags, stored or predicted, or was proposed for a flag deleted since.

    Does not read the events that explain a conflict.
    """
    with suppress(NotFound):
        now = read_now(change.request, change, flags)
        return now != change.made_from or is_of_deleted_flag(change.request, change, stored)
    return True


def find_missing_environment(request: ChangeRequest) -> str:
    """A sentence if the project has lost the environment; "" if it has it."""
    links = ProjectEnvironment.objects.filter(project=request.project_id, environment=request.environment_id)
    if links.exists():
        return ""
    return f"Project {request.project_id} has no environment {request.environment_id} any more."


def explain_conflict(request: ChangeRequest, changes: Sequence[Change]) -> str:
    """The first change in conflict, and the reason; "" if there is none."""
    for number, (change, conflict) in enumerate(
        zip(changes, find_conflicts(request, changes), strict=True), 1
    ):
        if conflict:
            return f"Change {number} ({say_change(request, change)}): {conflict}"
    return ""


def find_conflict(request: ChangeRequest, change: Change, stored: StoredFlags | None = None) -> str:
    """Why the change no longer fits the stored state; "" if it does."""
    try:
        now = read_now(request, change, stored)
    except NotFound as error:
        return error.message
    if is_of_deleted_flag(request, change, stored):
        return (
            f"{change.feature} has been deleted since this was proposed: this is another flag of that name."
        )
    if now == change.made_from:
        return ""
    return _explain_other(request, change, now, stored) or _explain_by_event(request, change)


def is_of_deleted_flag(request: ChangeRequest, change: Change, stored: StoredFlags | None = None) -> bool:
    """Whether it was proposed for a flag deleted since, even if another flag has its name."""
    stored = stored or read_stored(request, [change])
    deleted_at = stored.deleted_at.get(change.feature)
    return deleted_at is not None and deleted_at > change.created_at


def _explain_other(request: ChangeRequest, change: Change, now: Any, stored: StoredFlags | None) -> str:
    target = make_target(request, change, stored)
    return KINDS[change.action].explain_conflict(target, change.payload, change.made_from, now)


def _explain_by_event(request: ChangeRequest, change: Change) -> str:
    event = _latest_event(request, change)
    if event is None:
        return "it has been changed since this was proposed."
    at = event.created_at
    who = full_name(User.objects.filter(pk=event.actor_id or 0).first(), event.actor_name)
    return f"{who} changed it at {at:%H:%M} UTC on {at.day} {at:%b}, after it was added here."


def _latest_event(request: ChangeRequest, change: Change) -> AuditEvent | None:
    if not change.feature:
        return None
    events = AuditEvent.objects.filter(feature=change.feature, created_at__gt=change.created_at)
    events = events.exclude(type__startswith="change-")
    here = events.filter(environment=request.environment_id) | events.filter(environment=None)
    return here.newest_first().first()


# Scheduled changes of the same ------------------------------------------------------------------------------


def find_schedule_conflicts(
    project: str, environment: str, changes: Sequence[Change]
) -> list[list[dict[str, Any]]]:
    """For each change, the other scheduled requests of the environment, ``{id, title?}``, that change the same part.

    Archiving a flag changes all of it. One query.
    """
    scheduled = defaultdict(list)
    for other in _find_scheduled(project, environment, {change.feature for change in changes}):
        scheduled[other.feature].append(other)
    return [
        [
            {"id": each.pk, **({"title": each.title} if each.title else {})}
            for each in dict.fromkeys(
                other.request for other in scheduled[change.feature] if _meet(change, other)
            )
        ]
        for change in changes
    ]


def _find_scheduled(project: str, environment: str, flags: Collection[str]) -> QuerySet[Change]:
    scheduled = Change.objects.filter(
        request__project=project,
        request__environment=environment,
        request__state=ChangeRequest.State.SCHEDULED,
        feature__in=flags,
    )
    return scheduled.select_related("request").order_by("request", "id")


def _meet(change: Change, other: Change) -> bool:
    if other.request_id == change.request_id:
        return False
    subject, other_subject = (KINDS[each.action].find_subject(each.payload) for each in (change, other))
    return (
        any(KINDS[each.action].of_all for each in (change, other))
        or includes(subject, other_subject)
        or includes(other_subject, subject)
    )
