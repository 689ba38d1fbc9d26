"""/api/admin/projects/:projectId/access and …/users|groups/:id/roles: who holds which role in a project."""

from typing import ClassVar

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body, ListOf, validated
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from groups.authentication import ApiRequest
from projects.access import access_project
from projects.members import actions
from projects.members.actions import Holders
from projects.members.queries import project_access_document

TAGS = ["Project access"]


class Ids(ListOf):
    child = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class RolesBody(Body):
    roles = Ids(help_text="Ids of project roles; empty takes all access away.")


class AccessBody(Body):
    roles = Ids(allow_empty=False, help_text="Ids of project roles.")
    users = Ids(required=False, help_text="Ids of people and service accounts.")
    groups = Ids(required=False, help_text="Ids of groups.")


class HoldersOfRole(Body):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="Id of a project role.")
    users = Ids(required=False, help_text="Ids of people and service accounts.")
    groups = Ids(required=False, help_text="Ids of groups.")


class WholeAccessBody(Body):
    roles = HoldersOfRole(many=True)


class IdBody(Body):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class RoleAccessBody(Body):
    users = IdBody(many=True, required=False)
    groups = IdBody(many=True, required=False)


class UserOfProject(serializers.Serializer):
    id = serializers.IntegerField()
    isAPI = serializers.BooleanField()
    accountType = serializers.CharField(help_text="User or Service Account.")
    name = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField(allow_null=True)
    roleId = serializers.IntegerField(help_text="The first role given.")
    roles = serializers.ListField(child=serializers.IntegerField())
    addedAt = serializers.DateTimeField()


class GroupOfProject(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    rootRole = serializers.IntegerField(allow_null=True)
    mappingsSSO = serializers.ListField(child=serializers.CharField())
    scimId = serializers.CharField(allow_null=True)
    createdAt = serializers.DateTimeField()
    createdBy = serializers.CharField()
    users = serializers.ListField(child=serializers.DictField())
    roleId = serializers.IntegerField(help_text="The first role given.")
    roles = serializers.ListField(child=serializers.IntegerField())
    addedAt = serializers.DateTimeField()


class RoleOfProject(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    type = serializers.CharField()
    description = serializers.CharField()


class ProjectAccessRecord(serializers.Serializer):
    users = UserOfProject(many=True)
    groups = GroupOfProject(many=True)
    roles = RoleOfProject(many=True, help_text="The roles that can be given here.")


class ProjectAccessView(APIView):
    @extend_schema(
        operation_id="getProjectAccess",
        tags=TAGS,
        responses={200: ProjectAccessRecord} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The users and groups with roles of their own in the project, and the roles there are."""
        return Response(project_access_document(access_project(request.user, project_id)))

    @extend_schema(
        operation_id="addAccessToProject",
        tags=TAGS,
        request=AccessBody,
        responses={204: None} | refusals(400, 403, 404, 415),
        examples=[
            OpenApiExample("Two members", {"roles": [5], "users": [7, 8], "groups": []}, request_only=True)
        ],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Give roles to users and groups, besides those they hold."""
        actions.check_may_write(request.user, project_id)
        body = validated(AccessBody(data=request.data))
        holders = [
            Holders("user", tuple(body.get("users", ())), "users"),
            Holders("group", tuple(body.get("groups", ())), "groups"),
        ]
        actions.add_roles(project_id, holders, body["roles"], caller=request.user)
        return Response(status=204)

    @extend_schema(
        operation_id="setProjectAccess",
        tags=TAGS,
        request=WholeAccessBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[
            OpenApiExample(
                "An owner and a group of members",
                {"roles": [{"id": 4, "users": [7]}, {"id": 5, "users": [], "groups": [2]}]},
                request_only=True,
            )
        ],
    )
    def put(self, request: ApiRequest, project_id: str) -> Response:
        """Give exactly these roles to exactly these users and groups. Whoever is not named loses access."""
        actions.check_may_write(request.user, project_id)
        body = validated(WholeAccessBody(data=request.data))
        given = [
            (
                role["id"],
                [
                    Holders(kind, tuple(role.get(f"{kind}s", ())), f"roles[{index}].{kind}s")
                    for kind in ("user", "group")
                ],
            )
            for index, role in enumerate(body["roles"])
        ]
        actions.replace_access(project_id, given, caller=request.user)
        return Response()


class RoleAccessView(APIView):
    @extend_schema(
        operation_id="addRoleAccessToProject",
        tags=TAGS,
        request=RoleAccessBody,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, project_id: str, role_id: str) -> Response:
        """Give one role to users and groups."""
        actions.check_may_write(request.user, project_id)
        body = validated(RoleAccessBody(data=request.data))
        holders = [
            Holders(kind, tuple(named["id"] for named in body.get(f"{kind}s", ())), f"{kind}s")
            for kind in ("user", "group")
        ]
        actions.add_roles(project_id, holders, [path_id(role_id, "roleId")], caller=request.user)
        return Response()


@extend_schema_view(
    put=extend_schema(operation_id="setRolesForUser"),
    delete=extend_schema(operation_id="removeUserAccess"),
)
class UserRolesView(APIView):
    kind: ClassVar[str] = "user"

    @extend_schema(tags=TAGS, request=RolesBody, responses={204: None} | refusals(400, 403, 404, 415))
    def put(self, request: ApiRequest, project_id: str, holder_id: str) -> Response:
        """Give these roles in place of those held here."""
        actions.check_may_write(request.user, project_id)
        holder = Holders(self.kind, (path_id(holder_id),))
        roles = validated(RolesBody(data=request.data))["roles"]
        actions.set_roles(project_id, holder, roles, caller=request.user)
        return Response(status=204)

    @extend_schema(tags=TAGS, responses={204: None} | refusals(400, 403, 404))
    def delete(self, request: ApiRequest, project_id: str, holder_id: str) -> Response:
        """Take all access of their own in the project away."""
        actions.check_may_write(request.user, project_id)
        holder = Holders(self.kind, (path_id(holder_id),))
        actions.set_roles(project_id, holder, [], caller=request.user)
        return Response(status=204)


@extend_schema_view(
    put=extend_schema(operation_id="setRolesForGroup"),
    delete=extend_schema(operation_id="removeGroupAccess"),
)
class GroupRolesView(UserRolesView):
    kind = "group"


@extend_schema_view(
    post=extend_schema(operation_id="addRoleToUser"),
    put=extend_schema(operation_id="changeUserRole"),
    delete=extend_schema(operation_id="removeRoleFromUser"),
)
class UserRoleView(APIView):
    kind: ClassVar[str] = "user"

    def named(
        self, request: ApiRequest, project_id: str, holder_id: str, role_id: str
    ) -> tuple[Holders, int]:
        actions.check_may_write(request.user, project_id)
        return Holders(self.kind, (path_id(holder_id),)), path_id(role_id, "roleId")

    @extend_schema(tags=TAGS, request=None, responses={200: None} | refusals(400, 403, 404))
    def post(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Give one role besides those held."""
        holder, role = self.named(request, project_id, holder_id, role_id)
        actions.add_roles(project_id, [holder], [role], caller=request.user)
        return Response()

    @extend_schema(tags=TAGS, request=None, responses={200: None} | refusals(400, 403, 404))
    def put(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Give one role in place of those held."""
        holder, role = self.named(request, project_id, holder_id, role_id)
        actions.set_roles(project_id, holder, [role], caller=request.user)
        return Response()

    @extend_schema(tags=TAGS, responses={200: None} | refusals(400, 403, 404))
    def delete(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Take one role away; one that is not held is no error."""
        holder, role = self.named(request, project_id, holder_id, role_id)
        actions.remove_role(project_id, holder, role, caller=request.user)
        return Response()


@extend_schema_view(
    post=extend_schema(operation_id="addRoleToGroup"),
    put=extend_schema(operation_id="changeGroupRole"),
    delete=extend_schema(operation_id="removeRoleFromGroup"),
)
class GroupRoleView(UserRoleView):
    kind = "group"


PROJECT = "projects/<str:project_id>"
urlpatterns = [
    path(f"{PROJECT}/access", ProjectAccessView.as_view()),
    path(f"{PROJECT}/role/<str:role_id>/access", RoleAccessView.as_view()),
    path(f"{PROJECT}/users/<str:holder_id>/roles", UserRolesView.as_view()),
    path(f"{PROJECT}/groups/<str:holder_id>/roles", GroupRolesView.as_view()),
    path(f"{PROJECT}/users/<str:holder_id>/roles/<str:role_id>", UserRoleView.as_view()),
    path(f"{PROJECT}/groups/<str:holder_id>/roles/<str:role_id>", GroupRoleView.as_view()),
]
