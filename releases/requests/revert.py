"""Reverts an applied request with a new request of the inverse changes."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from projects.definitions import Definitions
from projects.history.definitions_at import flags_then, just_before
from releases.changes import KINDS
from releases.derive import ProposedChange, derive_changes
from releases.models import Change, ChangeRequest
from releases.requests.approvals import access_request, check_state
from releases.requests.impact import list_touched_flags
from releases.requests.propose import send_changes

State = ChangeRequest.State


@transactional
def revert_request(project_id: str, request_id: int, *, caller: Caller) -> ChangeRequest:
    """Sends a request for review that does the inverse. Later changes by others stay.

    Raises NotFound, InvalidOperation if it has not been applied or no request can revert it, ValidationError if a
    changed object is deleted.
    """
    request = access_request(project_id, request_id, caller)
    check_state(request, "revert", State.APPLIED)
    title = f"Revert request {request.pk}{f': {request.title}' if request.title else ''}"[:255]
    return send_changes(
        project_id, request.environment_id, _find_inverse(request), title=title, caller=caller
    )


def _find_inverse(request: ChangeRequest) -> Sequence[ProposedChange]:
    applied = datetime.fromisoformat(request.state_times[State.APPLIED])
    before, after = (_read(request, moment) for moment in (just_before(applied), applied))
    changes = derive_changes(after, before, archived=set(), answers_only=False)
    if changes is None:
        raise InvalidOperation(f"Change request {request.pk} has archived a flag. Revive it instead.")
    made = list(request.changes.all())
    if reason := next(filter(None, (KINDS[change.action].why_final for change in made)), ""):
        raise InvalidOperation(f"Change request {request.pk} {reason}")
    inverse = [change for change in changes if change.feature] + list(_invert_segments(made))
    if not inverse:
        plans = all(KINDS[change.action].is_later for change in made)
        what = "only release plans or safeguards. Change these again instead" if plans else "nothing"
        raise InvalidOperation(f"Change request {request.pk} has changed {what}.")
    return inverse


def _invert_segments(changes: Iterable[Change]) -> Iterator[ProposedChange]:
    """The earlier states of changed segments, whether a flag uses them or not."""
    for change in changes:
        before = KINDS[change.action].invert(change.payload, change.made_from)
        if before is not None:
            yield ProposedChange("", change.action, before)


def _read(request: ChangeRequest, moment: datetime) -> Definitions:
    """The touched flags, without their parents, at that time."""
    names = list_touched_flags(request)
    then = flags_then(names, [request.project_id], request.environment_id, moment)
    return Definitions.of(then.select(names).flags, then.segments)
