"""/api/admin/projects/:projectId/access and …/users|groups/:id/roles: roles held in a project.

Also /api/admin/projects/roles/:roleId/access: the projects in which a role is held.
"""

from typing import ClassVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.errors import NotFound
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, ListOf, path_id
from groups.login.links import make_absolute_url
from groups.people.serializers import NamedAccount, NamedGroup
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.members import actions
from projects.members.actions import WRITE_PERMISSIONS, Holders, Invitation, invite, mail_invitation
from projects.members.queries import make_project_access_document, read_role_usage
from projects.project_scope import InProjectViewSet


class Ids(ListOf):
    child = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class RolesBody(Body):
    roles = Ids(help_text="Ids of project roles; an empty list revokes all access.")


class AccessBody(Body):
    roles = Ids(allow_empty=False, help_text="Ids of project roles.")
    users = Ids(required=False, help_text="Ids of users and service accounts.")
    groups = Ids(required=False, help_text="Ids of groups.")


class HoldersOfRole(Body):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="Id of a project role.")
    users = Ids(required=False, help_text="Ids of users and service accounts.")
    groups = Ids(required=False, help_text="Ids of groups.")


class WholeAccessBody(Body):
    roles = HoldersOfRole(many=True)


class Names(ListOf):
    child = serializers.CharField(max_length=MAX_NAME_LENGTH)


class InvitationBody(Body):
    who = serializers.CharField(
        max_length=MAX_NAME_LENGTH,
        help_text="User name, email address, or `group: NAME`. An unknown email address gets an account.",
    )
    name = serializers.CharField(
        max_length=MAX_NAME_LENGTH, required=False, allow_blank=True, help_text="Full name of somebody new."
    )
    role = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="Id of a project role.")
    environments = Names(
        required=False, help_text="To which the role is limited; without them, the whole role."
    )


class GrantedRole(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField(help_text="Of a limited role: `Member · development`.")


class InvitedRecord(serializers.Serializer):
    kind = serializers.CharField(help_text="user or group.")
    id = serializers.IntegerField()
    name = serializers.CharField(help_text="User name, or the group's name.")
    role = GrantedRole(help_text="The role that was granted.")
    isNew = serializers.BooleanField(help_text="Whether the account was created.")
    inviteLink = serializers.CharField(
        required=False, help_text="One-time link to a first password, for a new account. Valid for 24 hours."
    )
    emailSent = serializers.BooleanField(
        required=False, help_text="Whether the link was also sent by email. Only with a link."
    )


class IdBody(Body):
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class RoleAccessBody(Body):
    users = IdBody(many=True, required=False)
    groups = IdBody(many=True, required=False)


class UserOfProject(NamedAccount):
    isAPI = serializers.BooleanField()
    accountType = serializers.CharField(help_text="User or Service Account.")
    roleId = serializers.IntegerField(help_text="The first role granted.")
    roles = serializers.ListField(child=serializers.IntegerField())
    addedAt = serializers.DateTimeField()


class GroupOfProject(NamedGroup):
    users = serializers.ListField(child=serializers.DictField())
    roleId = serializers.IntegerField(help_text="The first role granted.")
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
    roles = RoleOfProject(many=True, help_text="The roles that can be granted here.")


ROLE_USAGE_EXAMPLE = {
    "projects": [
        {
            "project": "shop",
            "role": 5,
            "userCount": 3,
            "serviceAccountCount": 1,
            "groupCount": 2,
        }
    ]
}


class ProjectRoleUsage(serializers.Serializer):
    """The number of users, service accounts and groups that hold a role in one project directly."""

    project = serializers.CharField(help_text="Project identifier.")
    role = serializers.IntegerField(help_text="Role identifier.")
    userCount = serializers.IntegerField(min_value=0, help_text="Users who have the role in the project.")
    serviceAccountCount = serializers.IntegerField(
        min_value=0, help_text="Service accounts that have the role in the project."
    )
    groupCount = serializers.IntegerField(
        min_value=0, help_text="Groups that have the role in the project; each counts once."
    )
    disabledCount = serializers.IntegerField(
        min_value=1,
        required=False,
        help_text="The disabled accounts among the users and service accounts: they hold the role and cannot use it. "
        "Absent if there are none.",
    )


class RoleProjectAccess(serializers.Serializer):
    projects = ProjectRoleUsage(
        many=True, help_text="By project id; empty for a role that is not granted anywhere."
    )


class ProjectAccessViewSet(InProjectViewSet):
    tags = ("Project access",)
    permissions = dict.fromkeys(("create", "replace", "invite"), WRITE_PERMISSIONS)

    @extend_schema(operation_id="getProjectAccess", responses=ProjectAccessRecord)
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the users and groups that hold roles in the project, and the roles that can be given."""
        return Response(make_project_access_document(self.project))

    @extend_schema(
        operation_id="addAccessToProject",
        request=AccessBody,
        responses={204: None},
        examples=[
            OpenApiExample("Two members", {"roles": [5], "users": [7, 8], "groups": []}, request_only=True)
        ],
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Add roles to users and groups. They keep the roles they hold."""
        body = self.validated(AccessBody)
        holders = [
            Holders("user", tuple(body.get("users", ())), "users"),
            Holders("group", tuple(body.get("groups", ())), "groups"),
        ]
        actions.add_roles(project_id, holders, body["roles"], caller=self.caller)
        return Response(status=204)

    @extend_schema(
        operation_id="setProjectAccess",
        request=WholeAccessBody,
        responses={200: None},
        examples=[
            OpenApiExample(
                "An owner and a group of members",
                {"roles": [{"id": 4, "users": [7]}, {"id": 5, "users": [], "groups": [2]}]},
                request_only=True,
            )
        ],
    )
    def replace(self, request: ApiRequest, project_id: str) -> Response:
        """Replace all access to the project. Users and groups that are not named lose their access."""
        body = self.validated(WholeAccessBody)
        holders_by_role = [
            (
                role["id"],
                [
                    Holders(kind, tuple(role.get(f"{kind}s", ())), f"roles[{index}].{kind}s")
                    for kind in ("user", "group")
                ],
            )
            for index, role in enumerate(body["roles"])
        ]
        actions.replace_access(project_id, holders_by_role, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="inviteToProject",
        request=InvitationBody,
        responses={201: InvitedRecord},
        examples=[
            OpenApiExample(
                "A member for development only",
                {"who": "ada@example.org", "role": 5, "environments": ["development"]},
                request_only=True,
            )
        ],
    )
    @action(methods=["post"], detail=False)
    def invite(self, request: ApiRequest, project_id: str) -> Response:
        """Grant a role to a person or a group, limited to environments if any are named, and invite a new person.

        A limited role is created, or an existing one with the same permissions is used. It has no permissions that
        affect other environments.
        """
        invited = invite(project_id, Invitation(**self.validated(InvitationBody)), caller=self.caller)
        record = {
            "kind": invited.kind,
            "id": invited.holder.pk,
            "name": str(invited.holder),
            "role": {"id": invited.role.pk, "name": invited.role.name},
            "isNew": invited.is_new,
        }
        if invited.link:
            record["inviteLink"] = make_absolute_url(request._request, invited.link)
            record["emailSent"] = mail_invitation(invited, self.project, caller=self.caller)
        return Response(record, status=201)


class RoleAccessViewSet(InProjectViewSet):
    tags = ("Project access",)
    permissions = {"create": WRITE_PERMISSIONS}

    @extend_schema(operation_id="addRoleAccessToProject", request=RoleAccessBody, responses={200: None})
    def create(self, request: ApiRequest, project_id: str, role_id: str) -> Response:
        """Add one role to users and groups."""
        body = self.validated(RoleAccessBody)
        holders = [
            Holders(kind, tuple(holder["id"] for holder in body.get(f"{kind}s", ())), f"{kind}s")
            for kind in ("user", "group")
        ]
        actions.add_roles(project_id, holders, [path_id(role_id, "Role", "roleId")], caller=self.caller)
        return Response()


class UserRoleViewSet(InProjectViewSet):
    """The roles that one user holds in the project."""

    tags = ("Project access",)
    lookup_url_kwarg = "role_id"
    permissions = dict.fromkeys(("replace", "clear", "add", "update", "destroy"), WRITE_PERMISSIONS)
    operation_ids = {
        "replace": "setRolesForUser",
        "clear": "removeUserAccess",
        "add": "addRoleToUser",
        "update": "changeUserRole",
        "destroy": "removeRoleFromUser",
    }
    kind: ClassVar[str] = "user"

    @extend_schema(request=RolesBody, responses={204: None})
    def replace(self, request: ApiRequest, project_id: str, holder_id: str) -> Response:
        """Replace the roles held in the project."""
        holder = self._holder(holder_id)
        roles = self.validated(RolesBody)["roles"]
        actions.set_roles(project_id, holder, roles, caller=self.caller)
        return Response(status=204)

    @extend_schema(responses={204: None})
    def clear(self, request: ApiRequest, project_id: str, holder_id: str) -> Response:
        """Remove all roles held directly in the project."""
        actions.set_roles(project_id, self._holder(holder_id), [], caller=self.caller)
        return Response(status=204)

    @extend_schema(request=None, responses={200: None})
    def add(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Add one role. The roles already held are kept."""
        holder, role = self._holder(holder_id), path_id(role_id, "Role", "roleId")
        actions.add_roles(project_id, [holder], [role], caller=self.caller)
        return Response()

    @extend_schema(request=None, responses={200: None})
    def update(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Replace all roles held in the project with this one."""
        holder, role = self._holder(holder_id), path_id(role_id, "Role", "roleId")
        actions.set_roles(project_id, holder, [role], caller=self.caller)
        return Response()

    @extend_schema(responses={200: None})
    def destroy(self, request: ApiRequest, project_id: str, holder_id: str, role_id: str) -> Response:
        """Remove one role. Removing a role that is not held is not an error."""
        holder, role = self._holder(holder_id), path_id(role_id, "Role", "roleId")
        actions.remove_role(project_id, holder, role, caller=self.caller)
        return Response()

    def _holder(self, holder_id: str) -> Holders:
        return Holders(self.kind, (path_id(holder_id, self.kind.capitalize()),))


class GroupRoleViewSet(UserRoleViewSet):
    """The roles that one group holds in the project."""

    operation_ids = {
        "replace": "setRolesForGroup",
        "clear": "removeGroupAccess",
        "add": "addRoleToGroup",
        "update": "changeGroupRole",
        "destroy": "removeRoleFromGroup",
    }
    kind = "group"


class RoleUsageViewSet(ViewSet):
    tags = ("Projects",)
    permissions = {"list": (Permission.ADMIN, Permission.READ_ROLE)}

    @extend_schema(
        operation_id="getRoleProjectAccess",
        summary="Projects that use a role",
        parameters=[
            OpenApiParameter(
                "role_id",
                str,
                OpenApiParameter.PATH,
                description="The role's id, a whole number.",
                examples=[OpenApiExample("Member", "5")],
            )
        ],
        responses=RoleProjectAccess,
        examples=[
            OpenApiExample(
                "Member in one project", ROLE_USAGE_EXAMPLE, response_only=True, status_codes=["200"]
            )
        ],
    )
    def list(self, request: ApiRequest, role_id: str) -> Response:
        """List the projects that use the role, with how many users, service accounts and groups hold it.

        Only projects that the caller can read are listed. Root roles belong to no project and are not listed. An
        unknown role gives an empty list. Needs `ADMIN` or `READ_ROLE`.
        """
        try:
            projects = read_role_usage(path_id(role_id, "Role", "roleId"), self.caller)
        except NotFound:  # an id outside the range of the database column
            projects = []
        return Response({"projects": projects})
