"""/api/admin/search/change-requests: search change requests across projects.

POST /api/admin/playground/change-request/:requestId: each flag's result after applying a request.
"""

from django import forms
from django.conf import settings
from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import choices
from flagadmin.core.http.fields import Texts, is_id, path_id
from flagadmin.core.lists.filters import MAX_LENGTH, MAX_OFFSET, ListFilter, WholeNumber
from groups.viewsets import ApiRequest, Caller, ViewSet
from playground.api import Loaded, answer_advanced
from playground.comparison.past import compile_changed
from playground.openapi import AdvancedPlaygroundResponse, EvaluationContext
from playground.queries import refuse_too_many
from playground.request import PlaygroundRequest
from playground.response.snapshot import ResponseSnapshot
from projects.flags.lists.conditions import IS, is_one_of
from projects.flags.lists.search import OperatorFilter
from projects.history.definitions_at import Changed
from projects.revision import read_revisions
from releases.models import ChangeRequest
from releases.requests.approvals import check_state
from releases.requests.impact import predict_request
from releases.requests.queries import CLOSED, UNDECIDED, found_document, visible_requests
from releases.requests.serializers import NamedRequest

STATES = {"open": (ChangeRequest.State.DRAFT, *UNDECIDED), "closed": CLOSED}


class SearchOptions(forms.Form):
    offset = WholeNumber(min_value=0, max_value=MAX_OFFSET, initial=0)
    limit = WholeNumber(min_value=1, max_value=MAX_LENGTH, initial=50)


class ChangeRequestFilter(ListFilter):
    state = OperatorFilter(
        ("IS",), is_one_of(lambda value: Q(state__in=STATES[value])), STATES.__contains__, choices(STATES)
    )
    createdBy = OperatorFilter(IS, is_one_of(lambda value: Q(author=int(value))), is_id, "an id")
    requestedApproverId = OperatorFilter(
        ("IS",), is_one_of(lambda value: Q(reviewers=int(value))), is_id, "an id"
    )

    class Meta:
        form = SearchOptions


class FoundAuthor(serializers.Serializer):
    id = serializers.IntegerField(required=False, help_text="Absent for a token, and for a deleted user.")
    username = serializers.CharField()
    imageUrl = serializers.CharField(help_text="Always empty.")


class FoundRequest(NamedRequest):
    features = Texts(help_text="Names of the flags it changes.")
    segments = Texts(help_text="Names of the segments it changes.")
    createdBy = FoundAuthor()


class FoundRequests(serializers.Serializer):
    changeRequests = FoundRequest(many=True)
    total = serializers.IntegerField(help_text="Number of change requests that match, on all pages.")


class ChangeRequestSearchViewSet(ViewSet):
    @extend_schema(
        operation_id="searchChangeRequests",
        tags=["Search"],
        parameters=ChangeRequestFilter.parameters(),
        responses={200: FoundRequests},
    )
    @action(detail=False, url_path="change-requests")
    def change_requests(self, request: ApiRequest) -> Response:
        """Search the change requests of the projects that the caller can read, newest first.

        Drafts are found by their authors alone.
        """
        requests = visible_requests(self.caller).prefetch_related(None).prefetch_related("changes")
        search = ChangeRequestFilter(request.query_params, requests)
        search.check()
        page = list(search.cut_page(search.qs.distinct()))
        return Response(
            {"changeRequests": [found_document(row) for row in page], "total": search.qs.distinct().count()}
        )


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
