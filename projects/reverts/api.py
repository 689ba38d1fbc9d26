"""/api/admin/events/:id/revert: takes a change back, keeping what has been changed since."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.path_ids import path_id
from groups.authentication import ApiRequest
from groups.viewsets import ViewSet
from projects.reverts.actions import revert_change
from projects.reverts.plan import find_change, plan_change
from projects.reverts.serializers import FLAG, ChangeRevert, RevertEventQuery, change_record


class RevertEventViewSet(ViewSet):
    tags = ("Events",)
    permissions = {"create": None}  # those of the changes that it makes; the action checks them

    def authorize(self, event_id: str) -> None:
        """Raises NotFound."""
        self.event_id = path_id(event_id)
        find_change(self.caller, self.event_id)

    @extend_schema(
        operation_id="previewRevertOfEvent",
        parameters=[OpenApiParameter("feature", str, description=FLAG)],
        responses={200: ChangeRevert},
    )
    def list(self, request: ApiRequest, event_id: str) -> Response:
        """List what reverting the change of an event would do, and what prevents it. Changes nothing."""
        query = RevertEventQuery(
            data={key: value for key, value in request.query_params.items() if key == "feature"}
        )
        query.is_valid(raise_exception=True)
        events = find_change(self.caller, self.event_id, query.validated_data["feature"])
        return Response(change_record(plan_change(events, caller=self.caller)))

    @extend_schema(
        operation_id="revertEvent",
        request=RevertEventQuery,
        responses={
            200: ChangeRevert,
            403: refusal(403, "A permission is missing, or such a change cannot be reverted."),
            409: refusal(
                409, "The same has been changed again since, or cannot be restored: `details` names all."
            ),
        },
    )
    def create(self, request: ApiRequest, event_id: str) -> Response:
        """Revert the change that an event belongs to: everything that the same request changed.

        Strategies, variants, switches, dependencies, details, tags, archiving and reviving of flags, segments, and the
        deprecation of strategy types become what they were before the change. What has been changed since and not by
        this change stays. It needs the permissions of what it changes. If anything cannot be reverted, nothing is
        changed. `GET` says what it would do. An import is undone with its own endpoint.
        """
        values = self.validated(RevertEventQuery)
        return Response(
            change_record(revert_change(self.event_id, flag=values["feature"], caller=self.caller))
        )
