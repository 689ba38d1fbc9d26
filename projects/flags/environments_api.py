"""…/features/:name/environments/:environment: a flag's switch and variants in an environment."""

from collections.abc import Callable
from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NotFound
from flagadmin.http.json_patch import PatchOperation, patched
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags import environments as actions
from projects.flags.bulk_api import ACTIVATE, activate_disabled
from projects.flags.queries import flag_environment_document
from projects.flags.serializers import FlagEnvironmentRecord, VariantBody, VariantsRecord
from projects.models import Flag, FlagEnvironment
from projects.strategies.api import accessible

TAGS = ["Features"]
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


class FlagEnvironmentView(APIView):
    @extend_schema(
        operation_id="getFeatureEnvironment",
        tags=TAGS,
        responses={200: FlagEnvironmentRecord} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """The flag in this environment, with strategies and variants."""
        flag = access_flag(request.user, project_id, name, archived=False)
        document = flag_environment_document(flag, environment)
        if document is None:
            raise NotFound(f"Project {project_id} has no environment {environment}.")
        return Response(document)


class SwitchOnView(APIView):
    @extend_schema(
        operation_id="toggleFeatureEnvironmentOn",
        tags=TAGS,
        request=None,
        parameters=[ACTIVATE],
        responses={200: None} | refusals(400, 403, 404),
    )
    def post(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Switch the flag on. Without an enabled strategy it gets the default one."""
        actions.enable_flag(
            project_id,
            name,
            environment,
            activate_disabled=activate_disabled(request),
            caller=request.user,
        )
        return Response()


class SwitchOffView(APIView):
    @extend_schema(
        operation_id="toggleFeatureEnvironmentOff",
        tags=TAGS,
        request=None,
        responses={200: None} | refusals(403, 404),
    )
    def post(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        actions.disable_flag(project_id, name, environment, caller=request.user)
        return Response()


class VariantsView(APIView):
    @extend_schema(
        operation_id="getEnvironmentFeatureVariants",
        tags=TAGS,
        responses={200: VariantsRecord} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        flag = accessible(request.user, project_id, name, environment)
        return _answer(_variants(flag, environment))

    @extend_schema(
        operation_id="overwriteEnvironmentFeatureVariants",
        tags=TAGS,
        request=VariantBody(many=True),
        responses={200: VariantsRecord} | refusals(400, 403, 404, 415),
        examples=[VARIANTS],
    )
    def put(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Replace the variants; an empty list clears them."""
        return self._edit(request, project_id, name, environment, lambda before: request.data)

    @extend_schema(
        operation_id="patchEnvironmentsFeatureVariants",
        tags=TAGS,
        request=PatchOperation(many=True),
        responses={200: VariantsRecord} | refusals(400, 403, 404, 415),
    )
    def patch(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Change the list of variants by a JSON Patch."""
        return self._edit(
            request, project_id, name, environment, lambda before: patched(before, request.data)
        )

    def _edit(
        self, request: ApiRequest, project_id: str, name: str, environment: str, edit: Callable[[Any], Any]
    ) -> Response:
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
        accessible(request.user, project_id, name, environment, permission)

        def checked(before: list[dict[str, Any]]) -> list[dict[str, Any]]:
            body = VariantBody(data=edit(before), many=True)
            body.is_valid(raise_exception=True)
            return list(body.validated_data)

        stored = actions.edit_variants(project_id, name, environment, checked, caller=request.user)
        return _answer(stored)


def _variants(flag: Flag, environment: str) -> list[dict[str, Any]]:
    row = FlagEnvironment.objects.filter(flag=flag, environment_id=environment).first()
    return row.variants if row else []


def _answer(variants: list[dict[str, Any]]) -> Response:
    return Response({"version": 1, "variants": variants})


ENVIRONMENT = "projects/<str:project_id>/features/<str:name>/environments/<str:environment>"
urlpatterns = [
    path(ENVIRONMENT, FlagEnvironmentView.as_view()),
    path(f"{ENVIRONMENT}/on", SwitchOnView.as_view()),
    path(f"{ENVIRONMENT}/off", SwitchOffView.as_view()),
    path(f"{ENVIRONMENT}/variants", VariantsView.as_view()),
]
