"""Reverts a flag to one of its versions, or a single change while keeping all later ones.

/api/admin/projects/:projectId/features/:name/revert, /api/admin/events/:id/revert,
/api/admin/environments/:name/revert
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin, make_etag
from flagadmin.core.http.fields import path_id, validate_body
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import iso
from groups.access import missing
from groups.viewsets import ApiRequest, ViewSet
from projects.access import access_environment, check_project
from projects.flags.flag_document import read_flag_document
from projects.flags.serializers import FlagRecord
from projects.history.definitions_at import read_present_version
from projects.project_scope import OnFlagViewSet
from projects.reverts.actions import revert_change, revert_environment, revert_flag
from projects.reverts.change_plan import find_change, plan_change
from projects.reverts.environment_plan import (
    Choice,
    check_environments,
    find_own_projects,
    find_target,
    plan_environment,
    plan_revert,
)
from projects.reverts.parts import PERMISSIONS, may_revert
from projects.reverts.serializers import (
    AT,
    EVENT,
    FLAG,
    ChangeRevert,
    RevertBody,
    RevertEventQuery,
    RevertPreview,
    SetBackBody,
    SetBackQuery,
    SetBackRecord,
    VersionQuery,
    make_change_record,
    make_part_records,
    make_set_back_record,
)
from projects.states import IN_ENVIRONMENT

TO_EVENT = OpenApiExample("To the version after an event", {"event": 4711}, request_only=True)
IN_ONE = OpenApiExample(
    "Only what production had yesterday",
    {
        "at": "2026-11-21T14:03:00Z",
        "environments": ["production"],
        "dependencies": False,
        "details": False,
    },
    request_only=True,
)

SINCE_SIX = OpenApiExample(
    "One project",
    {"at": "2026-11-21T18:00:00Z", "projects": ["checkout"]},
    request_only=True,
)


class RevertViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    permissions = {"create": PERMISSIONS}
    tagged = frozenset({"list"})
    conditional = frozenset({"create"})

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        """Checks whether the caller may revert at all. Further permissions needed depend on what differs."""
        if self.needed_permissions and project is not None and not may_revert(self.caller, project):
            raise missing(self.needed_permissions, project=project)

    def get_current_document(self) -> dict[str, Any]:
        return dict(read_present_version(self.flag))

    @extend_schema(
        operation_id="previewRevert",
        parameters=[
            OpenApiParameter("event", int, description=EVENT),
            OpenApiParameter("at", str, description=AT),
        ],
        responses={200: RevertPreview},
    )
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List what reverting the flag to a version would change, and what cannot be restored. Changes nothing."""
        query = {key: request.query_params[key] for key in ("event", "at") if key in request.query_params}
        values = validate_body(VersionQuery(data=query))
        at = self.find_target(values)
        plan = plan_revert(self.flag, at, caller=self.caller)
        parts = make_part_records(plan.parts)
        return Response({"event": values.get("event"), "at": iso(at), "parts": parts})

    @extend_schema(
        operation_id="revertFeature",
        request=RevertBody,
        responses={
            200: FlagRecord,
            409: refusal(
                409, "Something cannot be restored, such as a deleted segment: `details` names all."
            ),
        },
        examples=[TO_EVENT, IN_ONE],
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Revert the flag to one of its versions: to what it was after one of its audit events, or at a moment.

        Restores switches, strategies with their ids, and variants in all environments, dependencies, description, type,
        stale and impression data, in one transaction with one audit event. Segments, tags and links stay as they are,
        as do environments that the project did not use then. It needs the permissions of what it changes, in each
        environment. If anything cannot be restored, nothing is changed.
        """
        values = self.validated(RevertBody)
        environments = values.get("environments")
        if environments is not None:
            check_environments(environments, self.flag)
        choice = Choice(
            environments=None if environments is None else frozenset(environments),
            dependencies=values["dependencies"],
            details=values["details"],
        )
        at = self.find_target(values)
        revert_flag(project_id, name, at, choice=choice, expected=self.expected, caller=self.caller)
        self.flag.refresh_from_db()
        return Response(read_flag_document(self.flag, caller=self.caller))

    def find_target(self, values: dict[str, Any]) -> datetime:
        return find_target(self.caller, self.flag, event=values.get("event"), at=values.get("at"))


class RevertEventViewSet(ViewSet):
    tags = ("Events",)
    permissions = {"create": None}  # the permissions of the resulting changes, which the action checks

    def authorize(self, event_id: str) -> None:
        """Raises NotFound."""
        self.event_id = path_id(event_id, "Event")
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
        return Response(make_change_record(plan_change(events, caller=self.caller)))

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

        Restores strategies, variants, switches, dependencies, details, tags, archiving and reviving of flags,
        segments, and the deprecation of strategy types to their state before the change. Later changes to other
        things stay. The caller needs the permissions for all of these changes. If anything cannot be reverted,
        nothing is changed. `GET` previews the result. An import is undone with its own endpoint.
        """
        values = self.validated(RevertEventQuery)
        return Response(
            make_change_record(revert_change(self.event_id, flag=values["feature"], caller=self.caller))
        )


class RevertEnvironmentViewSet(ETagMixin, ViewSet):
    tags = ("Environments",)
    permissions = {"create": IN_ENVIRONMENT}
    tagged = frozenset()
    conditional = frozenset({"create"})

    def authorize(self, name: str) -> None:
        """Raises NotFound, NoAccess."""
        self.environment = access_environment(name).name
        find_own_projects(self.environment, self.caller)

    @extend_schema(
        operation_id="previewSetBack",
        parameters=[
            OpenApiParameter("at", str, required=True, description=AT),
            OpenApiParameter("projects", str, many=True, description="By default all that one may change."),
        ],
        responses={200: SetBackRecord},
    )
    def list(self, request: ApiRequest, name: str) -> Response:
        """List what setting the environment back to a moment would change, and what stays out. Changes nothing.

        The `ETag` makes the `POST` refuse with 412 if the list has become another one.
        """
        query = {key: request.query_params[key] for key in ("at",) if key in request.query_params}
        values = validate_body(
            SetBackQuery(data=query | {"projects": request.query_params.getlist("projects")})
        )
        plan = plan_environment(
            self.environment, values["at"], projects=self.read_projects(values), caller=self.caller
        )
        return Response(make_set_back_record(plan), headers={"ETag": make_etag(plan.document)})

    @extend_schema(
        operation_id="setBackEnvironment",
        request=SetBackBody,
        responses={200: SetBackRecord, 409: refusal(409, "That moment is unknown.")},
        examples=[SINCE_SIX],
    )
    def create(self, request: ApiRequest, name: str) -> Response:
        """Set the flags of the environment back to a moment: reverts all changes there since, whoever made them.

        Each flag gets the switch, strategies and variants of that moment; flags that are newer are turned off. It
        concerns the flags of all projects in which the caller may change flags there, or of the named ones, in one
        transaction. What all environments share stays, as do flags in `keptOut`. A running release plan still takes its
        next step. A project that needs change requests refuses it, as any change.
        """
        values = self.validated(SetBackBody)
        plan = revert_environment(
            self.environment,
            values["at"],
            projects=self.read_projects(values),
            flags=values.get("features"),
            expected=self.expected,
            caller=self.caller,
        )
        return Response(make_set_back_record(plan))

    def read_projects(self, values: dict[str, Any]) -> Sequence[str]:
        """Raises ValidationError naming projects that the caller cannot read."""
        return [check_project(self.caller, project, "projects").pk for project in values.get("projects", ())]
