"""/api/admin/strategies: built-in and custom strategy types."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import Body, NullableText
from flagadmin.core.http.openapi import refusal
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.models import StrategyType
from projects.strategies import strategy_types as actions


class StrategyParameter(Body):
    name = serializers.CharField()
    type = serializers.CharField(help_text="One of string, percentage, list, number, boolean.")
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    required = serializers.BooleanField(required=False, help_text="Default false.")  # type: ignore[assignment]


class StrategyTypeChanges(Body):
    title = NullableText(required=False, max_length=255)
    description = NullableText(required=False)
    parameters = StrategyParameter(many=True, required=False)
    deprecated = serializers.BooleanField(required=False)


class NewStrategyType(StrategyTypeChanges):
    name = serializers.CharField(help_text="1 to 100 characters: letters, digits and - . _ ~")
    parameters = StrategyParameter(many=True)


class StrategyTypeRecord(NewStrategyType):
    displayName = serializers.CharField(allow_null=True)
    editable = serializers.BooleanField(help_text="Whether the type is custom.")


class StrategyTypeList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    strategies = StrategyTypeRecord(many=True)


class StrategyTypeViewSet(ETagMixin, ViewSet):
    tags = ("Strategies",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.CREATE_STRATEGY,
        "update": Permission.UPDATE_STRATEGY,
        "destroy": Permission.DELETE_STRATEGY,
        "deprecate": Permission.UPDATE_STRATEGY,
        "reactivate": Permission.UPDATE_STRATEGY,
    }
    strategy_type: StrategyType

    def authorize(self, name: str | None = None) -> None:
        if name is not None:
            self.strategy_type = actions.access_strategy_type(name)
        self.check_permission()

    def get_current_document(self) -> dict[str, Any]:
        return self.strategy_type.document()

    @extend_schema(operation_id="getAllStrategies", responses={200: StrategyTypeList})
    def list(self, request: ApiRequest) -> Response:
        """List the strategy types, built-in and custom."""
        strategies = [strategy_type.document() for strategy_type in StrategyType.objects.all()]
        return Response({"version": 1, "strategies": strategies})

    @extend_schema(
        operation_id="createStrategy", request=NewStrategyType, responses={201: StrategyTypeRecord}
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a custom strategy type. Only your SDKs can evaluate it."""
        created = actions.create_strategy_type(self.validated(NewStrategyType), caller=self.caller)
        headers = {"Location": f"strategies/{created.name}"}
        return Response(created.document(), status=201, headers=headers)

    @extend_schema(operation_id="getStrategy", responses={200: StrategyTypeRecord})
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Get a strategy type."""
        return Response(self.strategy_type.document())

    @extend_schema(operation_id="updateStrategy", request=StrategyTypeChanges, responses={200: None})
    def update(self, request: ApiRequest, name: str) -> Response:
        """Update a custom strategy type. Omitted properties keep their values; the name cannot be changed."""
        changes = self.validated(StrategyTypeChanges)
        actions.update_strategy_type(name, changes, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="removeStrategy",
        responses={200: None, 409: refusal(409, "Strategies are of this type; the message names the flags.")},
    )
    def destroy(self, request: ApiRequest, name: str) -> Response:
        """Delete a custom strategy type that no strategy is of."""
        actions.delete_strategy_type(name, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(operation_id="deprecateStrategy", request=None, responses={200: None})
    @action(detail=True, methods=["post"])
    def deprecate(self, request: ApiRequest, name: str) -> Response:
        """Stop offering the type for new strategies. Existing strategies do not change."""
        actions.deprecate_strategy_type(name, caller=self.caller)
        return Response()

    @extend_schema(operation_id="reactivateStrategy", request=None, responses={200: None})
    @action(detail=True, methods=["post"])
    def reactivate(self, request: ApiRequest, name: str) -> Response:
        """Offer a deprecated type again."""
        actions.reactivate_strategy_type(name, caller=self.caller)
        return Response()
