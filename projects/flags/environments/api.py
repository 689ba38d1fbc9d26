"""/api/admin/projects/:projectId/features/:name/environments: flag toggles and variants."""

from collections.abc import Callable
from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import PatchOperation, apply_patch, make_patch_example
from groups.authentication import ApiRequest
from groups.permissions import Permission
from playground.engine.definitions import VariantDefinition
from projects.flags.bulk.api import ACTIVATE, activate_disabled
from projects.flags.environments import actions
from projects.flags.flag_document import read_flag_environment_document
from projects.flags.serializers import (
    FlagEnvironmentRecord,
    VariantBody,
    VariantsInEnvironments,
    VariantsRecord,
)
from projects.project_scope import OnFlagViewSet

VARIANTS = OpenApiExample(
    "Two variants, half of the users each",
    [
        {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "userId"},
        {
            "name": "red",
            "weight": 500,
            "weightType": "variable",
            "stickiness": "userId",
            "payload": {"type": "string", "value": "#aa0000"},
        },
    ],
    request_only=True,
)


Variants = list[VariantDefinition]


class FlagEnvironmentViewSet(OnFlagViewSet):
    tags = ("Features",)
    lookup_url_kwarg = "environment"
    permissions = {
        "turn_on": Permission.UPDATE_FEATURE_ENVIRONMENT,
        "turn_off": Permission.UPDATE_FEATURE_ENVIRONMENT,
    }

    @extend_schema(operation_id="getFeatureEnvironment", responses={200: FlagEnvironmentRecord})
    def retrieve(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Get the flag in this environment, with its strategies and variants."""
        return Response(read_flag_environment_document(self.flag, environment))

    @extend_schema(
        operation_id="toggleFeatureEnvironmentOn",
        request=None,
        parameters=[ACTIVATE],
        responses={200: None},
    )
    @action(detail=True, methods=["post"], url_path="on")
    def turn_on(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Turn the flag on. If it has no enabled strategy, it gets the default one."""
        activates = activate_disabled(request)
        actions.enable_flag(project_id, name, environment, activate_disabled=activates, caller=self.caller)
        return Response()

    @extend_schema(operation_id="toggleFeatureEnvironmentOff", request=None, responses={200: None})
    @action(detail=True, methods=["post"], url_path="off")
    def turn_off(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Turn the flag off."""
        actions.disable_flag(project_id, name, environment, caller=self.caller)
        return Response()


class FlagVariantsViewSet(ETagMixin, OnFlagViewSet):
    tagged, conditional = frozenset({"list"}), frozenset({"replace", "edit"})
    tags = ("Features",)
    permissions = {
        "replace": Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
        "edit": Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
    }

    @cached_property
    def variants(self) -> Variants:
        return actions.read_variants(self.flag, self.kwargs["environment"])

    def get_current_document(self) -> Variants:
        return self.variants

    @extend_schema(operation_id="getEnvironmentFeatureVariants", responses={200: VariantsRecord})
    def list(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """List the variants of the flag in this environment."""
        return _answer(self.variants)

    @extend_schema(
        operation_id="overwriteEnvironmentFeatureVariants",
        request=VariantBody(many=True),
        responses={200: VariantsRecord},
        examples=[VARIANTS],
    )
    def replace(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Replace the variants. An empty list removes all of them."""
        return self._edit(lambda before: request.data)

    @extend_schema(
        operation_id="patchEnvironmentsFeatureVariants",
        request=PatchOperation(many=True),
        examples=[make_patch_example("/0/name", "blue")],
        responses={200: VariantsRecord},
    )
    def edit(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Change the list of variants with a JSON Patch."""
        return self._edit(lambda before: apply_patch(before, request.data))

    def _edit(self, edit: Callable[[Any], Any]) -> Response:
        def validate_variants(before: Variants) -> Variants:
            body = VariantBody(data=edit(before), many=True)
            body.is_valid(raise_exception=True)
            return body.validated_data

        expected = self.expected
        return _answer(
            actions.edit_variants(
                **self.kwargs, edit=validate_variants, expected=expected, caller=self.caller
            )
        )


class FlagVariantsBatchViewSet(OnFlagViewSet):
    tags = ("Features",)
    permissions = {"replace": None}  # the action checks it for each environment of the body

    @extend_schema(
        operation_id="overwriteFeatureVariantsOnEnvironments",
        request=VariantsInEnvironments,
        responses={200: VariantsRecord},
        examples=[
            OpenApiExample(
                "Two environments",
                {"variants": VARIANTS.value, "environments": ["development", "production"]},
                request_only=True,
            )
        ],
    )
    def replace(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Replace the variants in several environments, all or none. An empty list removes all variants.

        Needs `UPDATE_FEATURE_ENVIRONMENT_VARIANTS` in each of the environments.
        """
        values = self.validated(VariantsInEnvironments)
        environments, variants = values["environments"], values["variants"]
        return _answer(actions.set_variants_in(project_id, name, environments, variants, caller=self.caller))


def _answer(variants: Variants) -> Response:
    return Response({"version": 1, "variants": variants})
