"""Takes an applied request back: with a request of its own, which does the inverse."""

from collections.abc import Sequence
from datetime import datetime

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from projects.definitions import Definitions
from projects.history.definitions_at import flags_then, just_before
from releases.derive import ProposedChange, derive_changes
from releases.models import ChangeRequest
from releases.requests.access import access_request, check_state
from releases.requests.impact import list_touched_flags
from releases.requests.propose import send_changes

State = ChangeRequest.State


@transactional
def revert_request(project_id: str, request_id: int, *, caller: Caller) -> ChangeRequest:
    """Sends a request for review that does the inverse. Later changes of others, which it did not make, stay.

    Raises NotFound, InvalidOperation if it has not been applied or no request can take it back, ValidationError if
    what it changed is gone.
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
    if not changes:
        raise InvalidOperation(f"Change request {request.pk} has changed nothing.")
    return changes


def _read(request: ChangeRequest, moment: datetime) -> Definitions:
    """The flags that it touches, without their parents, as they were."""
    names = list_touched_flags(request)
    then = flags_then(names, [request.project_id], request.environment_id, moment)
    return Definitions.of(then.select(names).flags, then.segments)
