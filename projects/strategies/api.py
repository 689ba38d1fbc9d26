"""The API of a flag's strategies in an environment, and of constraint validation."""

from dataclasses import replace
from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import PatchOperation, make_patch_example, patch_object, validate_body
from flagadmin.core.unreadable_values import check_values
from groups.viewsets import ApiRequest, Permission, ViewSet
from playground.engine.definitions import StrategyDefinition
from projects.access import access_strategy
from projects.flags.queries import read_strategy_documents
from projects.flags.serializers import StrategyPlace, StrategyRecord
from projects.models import Strategy
from projects.project_scope import OnFlagViewSet
from projects.rules import Limits
from projects.strategies import actions
from projects.strategies.constraint_rules import constraint_problems, make_constraint
from projects.strategies.fields import drop_sort_order
from projects.strategies.known_names import read_legal_values
from projects.strategies.serializers import ConstraintBody, StrategyBody, StrategyChanges

EXAMPLE = OpenApiExample(
    "A quarter of the users in two countries",
    {
        "name": "flexibleRollout",
        "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "checkout-redesign"},
        "constraints": [{"contextName": "country", "operator": "IN", "values": ["DE", "DK"]}],
    },
    request_only=True,
)


class StrategyViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    lookup_url_kwarg = "strategy_id"
    permissions = {
        "create": Permission.CREATE_FEATURE_STRATEGY,
        "update": Permission.UPDATE_FEATURE_STRATEGY,
        "partial_update": Permission.UPDATE_FEATURE_STRATEGY,
        "destroy": Permission.DELETE_FEATURE_STRATEGY,
        "set_sort_order": Permission.UPDATE_FEATURE_STRATEGY,
    }
    strategy: Strategy

    def authorize(self, *args: Any, **kwargs: Any) -> None:
        super().authorize(*args, **kwargs)
        if strategy_id := kwargs.get("strategy_id"):
            self.strategy = access_strategy(self.flag, kwargs["environment"], strategy_id)

    @cached_property
    def document(self) -> StrategyDefinition:
        [document] = read_strategy_documents([self.strategy])
        return document

    def get_current_document(self) -> dict[str, Any]:
        return drop_sort_order(self.document)

    @extend_schema(operation_id="getFeatureStrategies", responses={200: StrategyRecord(many=True)})
    def list(self, request: ApiRequest, **where: Any) -> Response:
        """List the strategies in the order in which they are evaluated."""
        strategies = Strategy.objects.filter(flag=self.flag, environment_id=where["environment"])
        return Response(read_strategy_documents(strategies))

    @extend_schema(
        operation_id="addFeatureStrategy",
        request=StrategyBody,
        responses={200: StrategyRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest, **where: Any) -> Response:
        """Add a strategy. It is the last one unless sortOrder says otherwise."""
        values = self.validated(StrategyBody)
        return Response(actions.add_strategy(**where, values=values, caller=self.caller))

    @extend_schema(
        operation_id="setStrategySortOrder", request=StrategyPlace(many=True), responses={200: None}
    )
    @action(detail=False, methods=["post"], url_path="set-sort-order")
    def set_sort_order(self, request: ApiRequest, **where: Any) -> Response:
        """Set the order of strategies. Those that are not named keep their places."""
        places = self.validated(StrategyPlace, many=True)
        orders = [(place["id"], place["sortOrder"]) for place in places]
        actions.order_strategies(**where, orders=orders, caller=self.caller)
        return Response()

    @extend_schema(operation_id="getFeatureStrategy", responses={200: StrategyRecord})
    def retrieve(self, request: ApiRequest, **where: Any) -> Response:
        """Get a strategy."""
        return Response(self.document)

    @extend_schema(
        operation_id="updateFeatureStrategy", request=StrategyChanges, responses={200: StrategyRecord}
    )
    def update(self, request: ApiRequest, **where: Any) -> Response:
        """Update a strategy. Omitted properties keep their values.

        Disabling the last enabled strategy turns the flag off in the environment.
        """
        values = self.validated(StrategyChanges)
        expected = self.expected
        return Response(
            actions.update_strategy(**where, values=values, expected=expected, caller=self.caller)
        )

    @extend_schema(
        operation_id="patchFeatureStrategy",
        request=PatchOperation(many=True),
        examples=[make_patch_example("/parameters/rollout", "50")],
        responses={200: StrategyRecord},
    )
    def partial_update(self, request: ApiRequest, **where: Any) -> Response:
        """Change the strategy by a JSON Patch. A member that is removed gets its default; sortOrder stays."""

        def edit(before: Any) -> dict[str, Any]:
            return validate_body(StrategyBody(data=patch_object(before, request.data, StrategyBody().fields)))

        expected = self.expected
        return Response(actions.edit_strategy(**where, edit=edit, expected=expected, caller=self.caller))

    @extend_schema(operation_id="deleteFeatureStrategy", responses={200: None})
    def destroy(self, request: ApiRequest, **where: Any) -> Response:
        """Remove the strategy. Removing the last enabled one turns the flag off in the environment."""
        actions.remove_strategy(**where, expected=self.expected, caller=self.caller)
        return Response()


class ConstraintViewSet(ViewSet):
    permissions = {"validate": None}

    @extend_schema(
        operation_id="validateConstraint",
        tags=["Segments"],
        request=ConstraintBody,
        responses={204: None},
        examples=[
            OpenApiExample(
                "A version",
                {"contextName": "version", "operator": "SEMVER_GT", "value": "2.1.0"},
                request_only=True,
            )
        ],
    )
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a constraint could be put on a strategy or a segment of any project."""
        constraint = make_constraint(self.validated(ConstraintBody))
        problems = constraint_problems(
            constraint, "", legal_values=read_legal_values(None), limits=Limits.from_settings()
        )
        check_values(replace(problem, path=problem.path.removeprefix(".")) for problem in problems)
        return Response(status=204)
