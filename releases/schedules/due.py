"""Applies due scheduled requests, on whichever server comes first.

Every server looks every second. After locking the project, it takes the schedule's row unless another server has it
(SKIP LOCKED), and applies the request in the same transaction: a server that dies in between has changed nothing.
"""

import threading
from datetime import UTC, datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.change_checks.comments import MAX_LENGTH
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, pluralize
from groups.access import Caller, missing
from projects.models import Flag
from releases.attempts import Attempts, wait_briefly_for_locks, waiting_for_database
from releases.models import ChangeRequest, Schedule
from releases.requests.apply import APPLY, make_changes_as, may_apply
from releases.requests.approvals import lock_project
from releases.requests.conflicts import explain_conflict, find_missing_environment
from releases.requests.details import enter, record_event
from releases.requests.review import find_refusal

State, Status = ChangeRequest.State, Schedule.Status
LATE = timedelta(seconds=30)
"""A change after this delay states that it was applied late."""
MISSED = timedelta(hours=1)
"""After this delay, nothing is applied any more, because users no longer expect it."""
_outage = threading.Event()
"""Set during an outage of the database, which is logged once."""


def apply_due() -> None:
    """Applies the due requests. A project blocked by another change is left for the next time."""
    attempts = Attempts()
    with waiting_for_database("Scheduled change requests", _outage):
        due = Schedule.objects.filter(status=Status.PENDING, at__lte=timezone.now()).order_by("at", "id")
        for key, project in due.values_list("pk", "request__project_id"):
            attempts.attempt(key, project, partial(apply_scheduled, key), partial(note_failure, key))


@transactional
def apply_scheduled(key: int) -> None:
    """Applies the request of a due schedule, or suspends it. Does nothing if another server has done so.

    Raises the errors of applying it.
    """
    if (schedule := _take(key)) is None:
        return
    request, now = schedule.request, timezone.now()
    if reason := find_obstacle(schedule, now):
        _end(schedule, Status.SUSPENDED, reason)
        return
    caller, schedule.status = Caller(user=schedule.by), Status.DONE
    try:
        with transaction.atomic(), changing(comment=_comment(schedule, now)):
            schedule.save(update_fields=["status"])
            make_changes_as(caller, request)
            enter(request, State.APPLIED, EventType.CHANGE_REQUEST_APPLIED_AS_SCHEDULED, caller)
    except NoAccess as error:
        _end(schedule, Status.SUSPENDED, f"{_who(schedule)} may not do this any more. {error.message}")


@transactional
def note_failure(key: int, reason: str) -> None:
    """Keeps the request scheduled, but does not retry it until it is rescheduled."""
    if (schedule := _take(key)) is not None:
        _end(schedule, Status.FAILED, reason)


def _take(key: int) -> Schedule | None:
    """The schedule, locked with its project and request, if it is still to be applied."""
    project_id = Schedule.objects.filter(pk=key).values_list("request__project_id", flat=True).first()
    if project_id is None:
        return None
    wait_briefly_for_locks()
    lock_project(project_id)
    rows = Schedule.objects.select_for_update(of=("self", "request"), skip_locked=True)
    rows = rows.filter(pk=key, status=Status.PENDING, at__lte=timezone.now(), request__state=State.SCHEDULED)
    return rows.select_related("request", "request__project", "by").first()


def _end(schedule: Schedule, status: Schedule.Status, reason: str) -> None:
    schedule.status, schedule.reason = status, reason
    schedule.save(update_fields=["status", "reason"])
    event = {
        Status.SUSPENDED: EventType.CHANGE_REQUEST_SCHEDULE_SUSPENDED,
        Status.FAILED: EventType.CHANGE_REQUEST_SCHEDULE_FAILED,
    }[status]
    with changing(comment=reason[:MAX_LENGTH]):
        record_event(event, schedule.request, Caller.system())


def find_obstacle(schedule: Schedule, now: datetime) -> str:
    """Why the request is not applied; "" if nothing prevents it."""
    request = schedule.request
    return (
        explain_lapse(schedule, now)
        or find_missing_environment(request)
        or _find_changed(request)
        or find_refusal(request)
    )


def explain_lapse(schedule: Schedule, now: datetime) -> str:
    """Why the schedule no longer counts, regardless of the changes: its time, or its author."""
    request, by = schedule.request, schedule.by
    if now - schedule.at > MISSED:
        due = schedule.at.astimezone(UTC)
        missed = f"It was due on {due.day} {due:%b %Y at %H:%M} UTC and could not be applied within an hour"
        return f"{missed}: it is {say_lateness(schedule.at, now)}."
    if by is None:
        return f"{_who(schedule)} has been deleted."
    if not by.is_active:
        return f"{_who(schedule)} can no longer log in."
    caller = Caller(user=by)
    if not caller.can_read(request.project_id):
        return f"{_who(schedule)} may not do this any more: they cannot read project {request.project_id}."
    place = {"project": request.project_id, "environment": request.environment_id}
    if not may_apply(request, caller):
        return f"{_who(schedule)} may not apply it any more. {missing([APPLY], **place).message}"
    return ""


def _who(schedule: Schedule) -> str:
    return f"{schedule.by_name}, who scheduled it,"


def _find_changed(request: ChangeRequest) -> str:
    changes = list(request.changes.all())
    names = {change.feature for change in changes if change.feature}
    archived = Flag.objects.archived().filter(project=request.project_id, name__in=names)
    if name := archived.order_by("name").values_list("name", flat=True).first():
        return f"{name} has been archived."
    return explain_conflict(request, changes)


def _comment(schedule: Schedule, now: datetime) -> str:
    """The comment of its events, which is never empty because a project may require one."""
    text = schedule.comment or schedule.request.title or f"Change request {schedule.request.pk}"
    late = say_lateness(schedule.at, now)
    return f"{text[: MAX_LENGTH - 100]} (scheduled{f', {late}' if late else ''})"


def say_lateness(at: datetime, applied: datetime) -> str:
    """``12 minutes late``, ``3 days late``, or "" if it is applied on time."""
    if applied - at < LATE:
        return ""
    minutes = max(1, round((applied - at).total_seconds() / 60))
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes >= 2 * size:
            return f"{pluralize(minutes // size, unit)} late"
    return f"{pluralize(minutes, 'minute')} late"
