"""Schedules and reschedules requests, and cancels their schedules."""

from datetime import datetime, timedelta

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.change_options import get_comment
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.errors import Conflict, InvalidOperation, ValidationError
from groups.access import Caller
from releases.models import ChangeRequest, Schedule
from releases.requests.apply import check_conflicts, check_may_apply, try_changes_as
from releases.requests.approvals import access_request, access_request_for_update, check_state
from releases.requests.details import add_comment, enter
from releases.requests.review import approve_if_enough, withdraw_if_moved
from releases.requests.states import may_apply_now, set_state

State = ChangeRequest.State
MIN_AHEAD = timedelta(minutes=1)


def schedule_request(
    project_id: str,
    request_id: int,
    at: datetime,
    *,
    text: str = "",
    expected: Expected = None,
    caller: Caller,
) -> ChangeRequest:
    """Schedules an approved request, or changes its time. The comment is stored until then.

    Raises NotFound, NoAccess, InvalidOperation, Conflict, ValidationError. If its effect is no longer the approved
    one, its approvals are withdrawn, and Conflict gives the reason.
    """
    request, refusal = _schedule(project_id, request_id, at, text, expected, caller)
    if refusal is not None:
        raise refusal
    return request


@transactional
def _schedule(
    project_id: str, request_id: int, at: datetime, text: str, expected: Expected, caller: Caller
) -> tuple[ChangeRequest, Conflict | None]:
    request = access_request_for_update(project_id, request_id, caller, expected=expected)
    approve_if_enough(request, caller)
    check_may_apply(request, caller)
    check_state(request, "schedule", State.APPROVED, State.SCHEDULED)
    if caller.user is None:
        raise InvalidOperation("Only people and service accounts can schedule change requests.")
    check_time(at)
    check_conflicts(request)
    try_changes_as(caller, request)
    if refusal := withdraw_if_moved(request, caller, done="scheduled"):
        return request, refusal
    if text:
        add_comment(request, text, caller)
    Schedule.objects.filter(request=request).delete()
    request.schedule = Schedule.objects.create(
        request=request, at=at, by=caller.user, by_name=caller.name, comment=get_comment()
    )
    enter(request, State.SCHEDULED, EventType.CHANGE_REQUEST_SCHEDULED, caller)
    return request, None


def check_time(at: datetime) -> None:
    """Raises ValidationError if it is not at least a minute ahead."""
    if at < timezone.now() + MIN_AHEAD:
        raise ValidationError.at("scheduledAt", "must be at least a minute from now")


@transactional
def cancel_schedule(
    project_id: str, request_id: int, *, text: str = "", expected: Expected = None, caller: Caller
) -> ChangeRequest:
    """Returns the request to approved. Raises NotFound, NoAccess, InvalidOperation, EditConflict."""
    request = access_request_for_update(project_id, request_id, caller, expected=expected)
    check_may_apply(request, caller)
    check_state(request, "cancel the schedule of", State.SCHEDULED)
    if text:
        add_comment(request, text, caller)
    enter(request, State.APPROVED, EventType.CHANGE_REQUEST_UNSCHEDULED, caller)
    return request


def may_schedule(request: ChangeRequest, caller: Caller) -> bool:
    """Whether the caller may schedule the request now, or change its schedule."""
    return caller.user is not None and may_apply_now(request, caller)


def set_any_state(
    project_id: str,
    request_id: int,
    state: str,
    *,
    text: str = "",
    at: datetime | None = None,
    cancels_schedule: bool = True,
    expected: Expected = None,
    caller: Caller,
) -> ChangeRequest:
    """Sets a state like `releases.requests.states.set_state`, or `Scheduled` with its time; `Approved` cancels the
    schedule.

    Without `cancels_schedule`, approving a scheduled request raises InvalidOperation. Raises the errors of the
    functions above.
    """
    if state == State.SCHEDULED:
        if at is None:
            raise ValidationError.at("scheduledAt", "is missing")
        return schedule_request(project_id, request_id, at, text=text, expected=expected, caller=caller)
    request = access_request(project_id, request_id, caller)
    if state == State.APPROVED and request.state == State.SCHEDULED and cancels_schedule:
        return cancel_schedule(project_id, request_id, text=text, expected=expected, caller=caller)
    return set_state(project_id, request_id, state, text=text, expected=expected, caller=caller)
