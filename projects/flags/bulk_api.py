"""What is done to many flags of a project in one call: archive, revive, delete, mark as stale, switch on and off."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project
from projects.flags import actions as flags
from projects.flags import archive as archiving
from projects.flags import environments as flag_environments
from projects.flags.serializers import NamesBody, StaleBody
from projects.flags.tags import access_named_flag
from projects.flags.toggle import project_environment

TAGS = ["Features"]
NAMES = OpenApiExample("Two flags", {"features": ["old-cart", "old-search"]}, request_only=True)
ACTIVATE = OpenApiParameter(
    "shouldActivateDisabledStrategies",
    bool,
    description="Enable a flag's disabled strategies rather than add a default one.",
)


class ArchiveCheck(serializers.Serializer):
    """What stands against archiving some flags together."""

    parentsWithChildFeatures = serializers.ListField(
        child=serializers.CharField(), help_text="Flags that an active flag outside the list depends on."
    )
    hasDeletedDependencies = serializers.BooleanField(
        help_text="Whether one of the flags depends on a parent. It still does when it is revived."
    )


class ArchiveFlagsView(APIView):
    @extend_schema(
        operation_id="archiveFeatures",
        tags=TAGS,
        request=NamesBody,
        responses={202: None} | refusals(400, 403, 404, 415),
        examples=[NAMES],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Archive flags. Unknown names are passed over; a parent goes only together with its children."""
        access_project(request.user, project_id, Permission.DELETE_FEATURE)
        archiving.archive_flags(project_id, _names(request), caller=request.user)
        return Response(status=202)


class ValidateArchiveView(APIView):
    @extend_schema(
        operation_id="validateArchiveFeatures",
        tags=TAGS,
        request=NamesBody,
        responses={200: ArchiveCheck} | refusals(400, 403, 404, 415),
        examples=[
            NAMES,
            OpenApiExample(
                "A flag outside the list depends on one of them",
                {"parentsWithChildFeatures": ["old-cart"], "hasDeletedDependencies": False},
                response_only=True,
            ),
        ],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Whether these flags could be archived together. Changes nothing; unknown names are passed over."""
        access_project(request.user, project_id, Permission.DELETE_FEATURE)
        parents, has_parents = archiving.check_archive(project_id, _names(request))
        return Response({"parentsWithChildFeatures": parents, "hasDeletedDependencies": has_parents})


class ReviveFlagsView(APIView):
    @extend_schema(
        operation_id="reviveFeatures",
        tags=TAGS,
        request=NamesBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[NAMES],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Bring archived flags back, off in every environment. Unknown names are passed over."""
        access_project(request.user, project_id, Permission.UPDATE_FEATURE)
        archiving.revive_flags(project_id, _names(request), caller=request.user)
        return Response()


class DeleteFlagsView(APIView):
    @extend_schema(
        operation_id="deleteFeatures",
        tags=TAGS,
        request=NamesBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[NAMES],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Delete archived flags for good. Unknown and active ones are passed over."""
        access_project(request.user, project_id, Permission.DELETE_FEATURE)
        archiving.delete_flags(project_id, _names(request), caller=request.user)
        return Response()


class StaleFlagsView(APIView):
    @extend_schema(
        operation_id="staleFeatures",
        tags=TAGS,
        request=StaleBody,
        responses={202: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Mark flags as stale, or as not stale."""
        access_project(request.user, project_id, Permission.UPDATE_FEATURE)
        values = validated(StaleBody(data=request.data))
        flags.set_stale(project_id, values["features"], values["stale"], caller=request.user)
        return Response(status=202)


class SwitchFlagsOnView(APIView):
    @extend_schema(
        operation_id="bulkToggleFeaturesEnvironmentOn",
        tags=TAGS,
        parameters=[ACTIVATE],
        request=NamesBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[NAMES],
    )
    def post(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Switch flags on. One without an enabled strategy gets the default one; unknown names are passed over."""
        names = _switchable(request, project_id, environment)
        flag_environments.enable_flags(
            project_id, names, environment, activate_disabled=activate_disabled(request), caller=request.user
        )
        return Response()


class SwitchFlagsOffView(APIView):
    @extend_schema(
        operation_id="bulkToggleFeaturesEnvironmentOff",
        tags=TAGS,
        request=NamesBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[NAMES],
    )
    def post(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Switch flags off. Unknown names are passed over."""
        names = _switchable(request, project_id, environment)
        flag_environments.disable_flags(project_id, names, environment, caller=request.user)
        return Response()


class ReviveFlagView(APIView):
    @extend_schema(
        operation_id="reviveFeature", tags=TAGS, request=None, responses={200: None} | refusals(403, 404)
    )
    def post(self, request: ApiRequest, name: str) -> Response:
        """Bring one archived flag back, off in every environment."""
        flag = access_named_flag(request.user, name, Permission.UPDATE_FEATURE)
        archiving.revive_flags(flag.project_id, [name], caller=request.user)
        return Response()


class DeleteFlagView(APIView):
    @extend_schema(operation_id="deleteFeature", tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, name: str) -> Response:
        """Delete one archived flag for good; an active one is left as it is."""
        flag = access_named_flag(request.user, name, Permission.DELETE_FEATURE)
        archiving.delete_flags(flag.project_id, [name], caller=request.user)
        return Response()


def activate_disabled(request: ApiRequest) -> bool:
    return request.query_params.get("shouldActivateDisabledStrategies") == "true"


def _switchable(request: ApiRequest, project_id: str, environment: str) -> list[str]:
    """The flags named, where the caller may switch them. Raises NotFound, NoAccess, ValidationError."""
    access_project(request.user, project_id)
    project_environment(project_id, environment)
    request.user.check(Permission.UPDATE_FEATURE_ENVIRONMENT, project=project_id, environment=environment)
    return _names(request)


def _names(request: ApiRequest) -> list[str]:
    names: list[str] = validated(NamesBody(data=request.data))["features"]
    return names


PROJECT = "projects/<str:project_id>"
SWITCHES = f"{PROJECT}/bulk_features/environments/<str:environment>"
urlpatterns = [
    path(f"{PROJECT}/archive", ArchiveFlagsView.as_view()),
    path(f"{PROJECT}/archive/validate", ValidateArchiveView.as_view()),
    path(f"{PROJECT}/revive", ReviveFlagsView.as_view()),
    path(f"{PROJECT}/delete", DeleteFlagsView.as_view()),
    path(f"{PROJECT}/stale", StaleFlagsView.as_view()),
    path(f"{SWITCHES}/on", SwitchFlagsOnView.as_view()),
    path(f"{SWITCHES}/off", SwitchFlagsOffView.as_view()),
    path("archive/revive/<str:name>", ReviveFlagView.as_view()),
    path("archive/<str:name>", DeleteFlagView.as_view()),
]
