"""POST /api/admin/playground/change-request/:requestId: what each flag would return once a request is applied."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.http.ids import path_id
from groups.authentication import ApiRequest
from groups.viewsets import ViewSet
from playground.advanced import Loaded, answer_advanced
from playground.openapi import AdvancedPlaygroundResponse, EvaluationContext
from playground.request import PlaygroundRequest
from releases.requests.as_if import access_unfinished_request, load_applied


class ContextBody(serializers.Serializer):
    context = EvaluationContext()  # type: ignore[assignment]  # a field's name, not DRF's own


class ChangeRequestPlaygroundViewSet(ViewSet):
    """Everybody may evaluate the change requests that they can read."""

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
