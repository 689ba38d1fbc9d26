"""/api/admin/search/change-requests: search change requests across projects."""

from django import forms
from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Texts
from flagadmin.core.http.parameters import is_id
from flagadmin.core.lists.filters import MAX_LENGTH, MAX_OFFSET, ListFilter, WholeNumber
from flagadmin.core.wording import choices
from groups.viewsets import ApiRequest, ViewSet
from projects.flags.lists.conditions import IS, is_one_of
from projects.flags.lists.search import OperatorFilter
from releases.models import ChangeRequest
from releases.requests.documents import found_document
from releases.requests.queries import CLOSED, UNDECIDED, visible_requests
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
