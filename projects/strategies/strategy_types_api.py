"""/api/admin/strategies: the kinds of strategies, built-in and custom."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body, validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.models import StrategyType
from projects.strategies import strategy_types as actions
from projects.strategies.strategy_type_documents import strategy_type_document

TAGS = ["Strategies"]


class StrategyParameter(Body):
    name = serializers.CharField()
    type = serializers.CharField(help_text="One of string, percentage, list, number, boolean.")
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    required = serializers.BooleanField(required=False, help_text="Default false.")  # type: ignore[assignment]


class StrategyTypeChanges(Body):
    title = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=255)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    parameters = StrategyParameter(many=True, required=False)
    deprecated = serializers.BooleanField(required=False)


class NewStrategyType(StrategyTypeChanges):
    name = serializers.CharField(help_text="1 to 100 of letters, digits and - . _ ~")
    parameters = StrategyParameter(many=True)


class StrategyTypeRecord(NewStrategyType):
    displayName = serializers.CharField(allow_null=True)
    editable = serializers.BooleanField(help_text="Whether it is a custom type.")


class StrategyTypeList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Of this format: 1.")
    strategies = StrategyTypeRecord(many=True)


def _values(body: serializers.Serializer) -> dict[str, Any]:
    """``null`` texts are empty ones."""
    return {key: "" if value is None else value for key, value in validated(body).items()}


class StrategyTypesView(APIView):
    @extend_schema(
        operation_id="getAllStrategies", tags=TAGS, responses={200: StrategyTypeList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        strategies = [strategy_type_document(strategy_type) for strategy_type in StrategyType.objects.all()]
        return Response({"version": 1, "strategies": strategies})

    @extend_schema(
        operation_id="createStrategy",
        tags=TAGS,
        request=NewStrategyType,
        responses={201: StrategyTypeRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Create a custom type: only your SDKs can evaluate it."""
        request.user.check(Permission.CREATE_STRATEGY)
        created = actions.create_strategy_type(
            _values(NewStrategyType(data=request.data)), caller=request.user
        )
        headers = {"Location": f"strategies/{created.name}"}
        return Response(strategy_type_document(created), status=201, headers=headers)


class StrategyTypeView(APIView):
    @extend_schema(
        operation_id="getStrategy", tags=TAGS, responses={200: StrategyTypeRecord} | refusals(403, 404)
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        return Response(strategy_type_document(actions.access_strategy_type(name)))

    @extend_schema(
        operation_id="updateStrategy",
        tags=TAGS,
        request=StrategyTypeChanges,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, name: str) -> Response:
        """Change what is given of a custom type; the name stays."""
        actions.access_strategy_type(name)
        request.user.check(Permission.UPDATE_STRATEGY)
        changes = _values(StrategyTypeChanges(data=request.data))
        actions.update_strategy_type(name, changes, caller=request.user)
        return Response()

    @extend_schema(
        operation_id="removeStrategy",
        tags=TAGS,
        responses={200: None}
        | refusals(403, 404, descriptions={409: "Strategies are of this type; the message names the flags."}),
    )
    def delete(self, request: ApiRequest, name: str) -> Response:
        actions.delete_strategy_type(name, caller=request.user)
        return Response()


class DeprecateStrategyTypeView(APIView):
    @extend_schema(
        operation_id="deprecateStrategy", tags=TAGS, request=None, responses={200: None} | refusals(403, 404)
    )
    def post(self, request: ApiRequest, name: str) -> Response:
        """No longer offer the type for new strategies. Those there are go on."""
        actions.deprecate_strategy_type(name, caller=request.user)
        return Response()


class ReactivateStrategyTypeView(APIView):
    @extend_schema(
        operation_id="reactivateStrategy", tags=TAGS, request=None, responses={200: None} | refusals(403, 404)
    )
    def post(self, request: ApiRequest, name: str) -> Response:
        """Offer the type again."""
        actions.reactivate_strategy_type(name, caller=request.user)
        return Response()


urlpatterns = [
    path("strategies", StrategyTypesView.as_view()),
    path("strategies/<str:name>", StrategyTypeView.as_view()),
    path("strategies/<str:name>/deprecate", DeprecateStrategyTypeView.as_view()),
    path("strategies/<str:name>/reactivate", ReactivateStrategyTypeView.as_view()),
]
