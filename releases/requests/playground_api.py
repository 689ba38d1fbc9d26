"""POST /api/admin/playground/change-request/:requestId: each flag's result after applying a request."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.http.parameters import path_id
from groups.viewsets import ApiRequest, Caller, ViewSet
from playground.advanced import Loaded, answer_advanced
from playground.comparison.past import compile_changed
from playground.openapi import AdvancedPlaygroundResponse, EvaluationContext
from playground.queries import refuse_too_many
from playground.request import PlaygroundRequest
from playground.response.snapshot import ResponseSnapshot
from projects.history.definitions_at import Changed
from projects.revision import read_revisions
from releases.models import ChangeRequest
from releases.requests.access import check_state
from releases.requests.impact import predict_request
from releases.requests.queries import UNDECIDED, visible_requests


class ContextBody(serializers.Serializer):
    context = EvaluationContext()  # type: ignore[assignment]  # a field's name, not DRF's own


class ChangeRequestPlaygroundViewSet(ViewSet):
    """Every user may evaluate the change requests that they can read."""

    tags = ("Change requests",)
    permissions = {"create": None}

    @extend_schema(
        operation_id="getChangeRequestPlayground",
        request=ContextBody,
        responses={200: AdvancedPlaygroundResponse},
    )
    def create(self, request: ApiRequest, request_id: str) -> Response:
        """Evaluate a context as if a change request were applied.

        Answers as the advanced playground does, for the project and the environment of the request.
        """
        proposed = access_unfinished_request(path_id(request_id, "Change request"), self.caller)
        body = request.data
        if isinstance(body, dict):
            place = {"environments": [proposed.environment_id], "projects": [proposed.project_id]}
            body = place | {key: value for key, value in body.items() if key == "context"}

        def load(query: PlaygroundRequest, contexts: int) -> Loaded:
            return load_applied(proposed, contexts=contexts), []

        return Response(answer_advanced(body, load))


def access_unfinished_request(request_id: int, caller: Caller) -> ChangeRequest:
    """A request that the caller can read and that is neither applied nor ended. Raises NotFound, InvalidOperation."""
    request = get_or_404(visible_requests(caller), f"Change request {request_id} not found.", pk=request_id)
    check_state(request, "evaluate", ChangeRequest.State.DRAFT, *UNDECIDED)
    return request


@consistent_reads()
def load_applied(request: ChangeRequest, *, contexts: int) -> dict[str, ResponseSnapshot]:
    """The flags by environment. Raises ValidationError if it cannot be applied, or there are too many `contexts`."""
    current, environment = read_revisions([request.project_id]), request.environment_id
    refuse_too_many(current, environments=1, contexts=contexts, limit=settings.PLAYGROUND_MAX_EVALUATIONS)
    changed = Changed.between(*predict_request(request))
    return {environment: compile_changed(current, environment, changed)}
