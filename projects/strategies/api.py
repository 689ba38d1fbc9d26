"""…/features/:name/environments/:environment/strategies: the strategies of a flag in an environment."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import validated
from flagadmin.http.json_patch import PatchOperation, patched_object
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags.queries import strategy_documents
from projects.flags.serializers import StrategyPlace, StrategyRecord
from projects.flags.toggle import project_environment
from projects.models import Flag, Strategy
from projects.strategies import actions
from projects.strategies.serializers import StrategyBody, StrategyChanges

TAGS = ["Features"]
EXAMPLE = OpenApiExample(
    "A quarter of the users in two countries",
    {
        "name": "flexibleRollout",
        "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "checkout-redesign"},
        "constraints": [{"contextName": "country", "operator": "IN", "values": ["DE", "DK"]}],
    },
    request_only=True,
)


def accessible(
    caller: Caller, project_id: str, name: str, environment: str, permission: Permission | None = None
) -> Flag:
    """An active flag, in an environment of its project, to read or with ``permission`` to change.

    Raises NotFound, NoAccess.
    """
    flag = access_flag(
        caller, project_id, name, archived=False, permission=permission, environment=environment
    )
    project_environment(project_id, environment)
    return flag


class StrategiesView(APIView):
    @extend_schema(
        operation_id="getFeatureStrategies",
        tags=TAGS,
        responses={200: StrategyRecord(many=True)} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """In the order in which they are tried."""
        flag = accessible(request.user, project_id, name, environment)
        found = Strategy.objects.filter(flag=flag, environment_id=environment)
        return Response(strategy_documents(found))

    @extend_schema(
        operation_id="addFeatureStrategy",
        tags=TAGS,
        request=StrategyBody,
        responses={200: StrategyRecord} | refusals(400, 403, 404, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Add a strategy, last unless sortOrder says otherwise."""
        accessible(request.user, project_id, name, environment, Permission.CREATE_FEATURE_STRATEGY)
        given = validated(StrategyBody(data=request.data))
        return Response(actions.add_strategy(project_id, name, environment, given, caller=request.user))


class StrategyOrderView(APIView):
    @extend_schema(
        operation_id="setStrategySortOrder",
        tags=TAGS,
        request=StrategyPlace(many=True),
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Give strategies their places; those not named keep theirs."""
        accessible(request.user, project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY)
        body = StrategyPlace(data=request.data, many=True)
        body.is_valid(raise_exception=True)
        orders = [(place["id"], place["sortOrder"]) for place in body.validated_data]
        actions.order_strategies(project_id, name, environment, orders, caller=request.user)
        return Response()


class StrategyView(APIView):
    @extend_schema(
        operation_id="getFeatureStrategy",
        tags=TAGS,
        responses={200: StrategyRecord} | refusals(403, 404),
    )
    def get(
        self, request: ApiRequest, project_id: str, name: str, environment: str, strategy_id: str
    ) -> Response:
        return Response(_document(request.user, project_id, name, environment, strategy_id))

    @extend_schema(
        operation_id="updateFeatureStrategy",
        tags=TAGS,
        request=StrategyChanges,
        responses={200: StrategyRecord} | refusals(400, 403, 404, 415),
    )
    def put(
        self, request: ApiRequest, project_id: str, name: str, environment: str, strategy_id: str
    ) -> Response:
        """Change what is given. Disabling the last enabled strategy switches the flag off there."""
        _document(
            request.user, project_id, name, environment, strategy_id, Permission.UPDATE_FEATURE_STRATEGY
        )
        given = validated(StrategyChanges(data=request.data))
        return Response(
            actions.update_strategy(project_id, name, environment, strategy_id, given, caller=request.user)
        )

    @extend_schema(
        operation_id="patchFeatureStrategy",
        tags=TAGS,
        request=PatchOperation(many=True),
        responses={200: StrategyRecord} | refusals(400, 403, 404, 415),
    )
    def patch(
        self, request: ApiRequest, project_id: str, name: str, environment: str, strategy_id: str
    ) -> Response:
        """Change the strategy by a JSON Patch. A member that is removed gets its default; the place stays."""
        _document(
            request.user, project_id, name, environment, strategy_id, Permission.UPDATE_FEATURE_STRATEGY
        )

        def edit(before: dict[str, Any]) -> dict[str, Any]:
            return validated(StrategyBody(data=patched_object(before, request.data, StrategyBody().fields)))

        return Response(
            actions.edit_strategy(project_id, name, environment, strategy_id, edit, caller=request.user)
        )

    @extend_schema(
        operation_id="deleteFeatureStrategy", tags=TAGS, responses={200: None} | refusals(403, 404)
    )
    def delete(
        self, request: ApiRequest, project_id: str, name: str, environment: str, strategy_id: str
    ) -> Response:
        """Remove the strategy. Removing the last enabled one switches the flag off there."""
        actions.remove_strategy(project_id, name, environment, strategy_id, caller=request.user)
        return Response()


def _document(
    caller: Caller,
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    permission: Permission | None = None,
) -> dict[str, Any]:
    flag = accessible(caller, project_id, name, environment, permission)
    [document] = strategy_documents([actions.access_strategy(flag, environment, strategy_id)])
    return document


STRATEGIES = "projects/<str:project_id>/features/<str:name>/environments/<str:environment>/strategies"
urlpatterns = [
    path(STRATEGIES, StrategiesView.as_view()),
    path(f"{STRATEGIES}/set-sort-order", StrategyOrderView.as_view()),
    path(f"{STRATEGIES}/<str:strategy_id>", StrategyView.as_view()),
]
