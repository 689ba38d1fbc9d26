"""The flags of a project as a change request would leave them."""

from django.conf import settings

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import consistent_reads
from groups.access import Caller
from playground.comparison.past import compile_changed
from playground.queries import refuse_too_many
from playground.response.snapshot import ResponseSnapshot
from projects.history.definitions_at import Changed
from projects.revision import read_revisions
from releases.models import ChangeRequest
from releases.requests.access import check_state
from releases.requests.impact import predict_request
from releases.requests.queries import UNDECIDED, visible_requests

State = ChangeRequest.State


def access_unfinished_request(request_id: int, caller: Caller) -> ChangeRequest:
    """A request that the caller can read and that is neither applied nor ended. Raises NotFound, InvalidOperation."""
    request = get_or_404(visible_requests(caller), f"Change request {request_id} not found.", pk=request_id)
    check_state(request, "evaluate", State.DRAFT, *UNDECIDED)
    return request


@consistent_reads()
def load_applied(request: ChangeRequest, *, contexts: int) -> dict[str, ResponseSnapshot]:
    """The flags by environment. Raises ValidationError if it cannot be applied, or there are too many `contexts`."""
    current, environment = read_revisions([request.project_id]), request.environment_id
    refuse_too_many(current, environments=1, contexts=contexts, limit=settings.PLAYGROUND_MAX_EVALUATIONS)
    changed = Changed.between(*predict_request(request))
    return {environment: compile_changed(current, environment, changed)}
