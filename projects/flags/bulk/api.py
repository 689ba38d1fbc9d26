"""/api/admin/projects/:projectId/archive, revive, delete, stale, bulk_features: change several flags."""

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Texts
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project, find_project_environment
from projects.flags import actions as flags
from projects.flags.archive import actions as archiving
from projects.flags.environments.actions import switch_flags
from projects.flags.serializers import NamesBody, StaleBody
from projects.project_scope import InProjectViewSet

NAMES = OpenApiExample("Two flags", {"features": ["old-cart", "old-search"]}, request_only=True)
ACTIVATE = OpenApiParameter(
    "shouldActivateDisabledStrategies",
    bool,
    description="Enable a flag's disabled strategies rather than add a default one.",
)


class ArchiveCheck(serializers.Serializer):
    """The reasons why these flags cannot be archived together."""

    parentsWithChildFeatures = Texts(help_text="Flags that an active flag outside the list depends on.")
    hasDeletedDependencies = serializers.BooleanField(
        help_text="Whether one of the flags depends on a parent. It still does when it is revived."
    )


class BulkFlagViewSet(InProjectViewSet):
    """Actions on several flags of a project, all or none. Refuses names of other flags."""

    tags = ("Features",)
    permissions = {
        "archive": Permission.DELETE_FEATURE,
        "validate_archive": Permission.DELETE_FEATURE,
        "revive": Permission.UPDATE_FEATURE,
        "delete_flags": Permission.DELETE_FEATURE,
        "stale": Permission.UPDATE_FEATURE,
        "turn_on": Permission.UPDATE_FEATURE_ENVIRONMENT,
        "turn_off": Permission.UPDATE_FEATURE_ENVIRONMENT,
    }

    def authorize(self, project_id: str, environment: str | None = None) -> None:
        self.project = access_project(self.caller, project_id)
        if environment is not None:
            find_project_environment(project_id, environment)
        self.check_permission(project=project_id, environment=environment)

    @property
    def names(self) -> list[str]:
        """The flag names in the request body. Raises ValidationError."""
        return self.validated(NamesBody)["features"]

    @extend_schema(operation_id="archiveFeatures", request=NamesBody, responses={202: None}, examples=[NAMES])
    @action(detail=False, methods=["post"])
    def archive(self, request: ApiRequest, project_id: str) -> Response:
        """Archive flags. A parent can only be archived with its children."""
        archiving.archive_flags(project_id, self.names, caller=self.caller)
        return Response(status=202)

    @extend_schema(
        operation_id="validateArchiveFeatures",
        request=NamesBody,
        responses={200: ArchiveCheck},
        examples=[
            NAMES,
            OpenApiExample(
                "A flag outside the list depends on one of them",
                {"parentsWithChildFeatures": ["old-cart"], "hasDeletedDependencies": False},
                response_only=True,
            ),
        ],
    )
    @action(detail=False, methods=["post"], url_path="archive/validate")
    def validate_archive(self, request: ApiRequest, project_id: str) -> Response:
        """Check whether these flags could be archived together, without archiving them.

        Unknown names are skipped.
        """
        parents, has_parents = archiving.check_archive(project_id, self.names)
        return Response({"parentsWithChildFeatures": parents, "hasDeletedDependencies": has_parents})

    @extend_schema(operation_id="reviveFeatures", request=NamesBody, responses={200: None}, examples=[NAMES])
    @action(detail=False, methods=["post"])
    def revive(self, request: ApiRequest, project_id: str) -> Response:
        """Revive archived flags, turned off in every environment."""
        archiving.revive_flags(project_id, self.names, caller=self.caller)
        return Response()

    @extend_schema(operation_id="deleteFeatures", request=NamesBody, responses={200: None}, examples=[NAMES])
    @action(detail=False, methods=["post"], url_path="delete")
    def delete_flags(self, request: ApiRequest, project_id: str) -> Response:
        """Permanently delete archived flags. Active ones are refused."""
        archiving.delete_flags(project_id, self.names, caller=self.caller)
        return Response()

    @extend_schema(operation_id="staleFeatures", request=StaleBody, responses={202: None})
    @action(detail=False, methods=["post"])
    def stale(self, request: ApiRequest, project_id: str) -> Response:
        """Mark flags as stale or not stale. Archived ones are refused."""
        values = self.validated(StaleBody)
        flags.set_stale({project_id: values["features"]}, values["stale"], caller=self.caller)
        return Response(status=202)

    @extend_schema(
        operation_id="bulkToggleFeaturesEnvironmentOn",
        parameters=[ACTIVATE],
        request=NamesBody,
        responses={200: None},
        examples=[NAMES],
    )
    @action(detail=False, methods=["post"], url_path="bulk_features/environments/<str:environment>/on")
    def turn_on(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Turn flags on. Flags without an enabled strategy get the default one. Archived ones are refused."""
        return self._switch(project_id, environment, True)

    @extend_schema(
        operation_id="bulkToggleFeaturesEnvironmentOff",
        request=NamesBody,
        responses={200: None},
        examples=[NAMES],
    )
    @action(detail=False, methods=["post"], url_path="bulk_features/environments/<str:environment>/off")
    def turn_off(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Turn flags off. Archived ones are refused."""
        return self._switch(project_id, environment, False)

    def _switch(self, project_id: str, environment: str, enabled: bool) -> Response:
        activates = activate_disabled(self.request)
        switch_flags(
            {project_id: self.names}, environment, enabled, activate_disabled=activates, caller=self.caller
        )
        return Response()


def activate_disabled(request: ApiRequest) -> bool:
    return request.query_params.get("shouldActivateDisabledStrategies") == "true"
