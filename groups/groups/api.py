"""/api/admin/groups: groups of users who share roles."""

from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import Body, ListOf, Texts, path_id
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import iso
from groups.groups import actions
from groups.groups.actions import access_group, read_groups
from groups.models import Group
from groups.models.people import GroupDocument
from groups.people.serializers import AccountRecord, NamedGroup, RootRoleField, make_account_record
from groups.permissions import ROLE_READERS, Permission
from groups.viewsets import ApiRequest, ViewSet

EXAMPLE = OpenApiExample(
    "Two members",
    {
        "name": "Checkout team",
        "description": "Everybody who works on the checkout",
        "rootRole": None,
        "mappingsSSO": [],
        "users": [{"user": {"id": 4}}, {"user": {"id": 7}}],
    },
    request_only=True,
)
GROUP_ID = OpenApiParameter(
    "groupId", str, OpenApiParameter.PATH, description="The group's id: a whole number."
)


class MemberId(Body):
    id = serializers.IntegerField(min_value=1)


class MemberBody(Body):
    user = MemberId()


class GroupUpdateBody(Body):
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=10_000)
    mappingsSSO = ListOf(
        source="mappings_sso",
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="The group's names in the identity provider.",
    )
    rootRole = RootRoleField(
        source="root_role", required=False, allow_null=True, help_text="Id or name; null for none."
    )
    users = MemberBody(many=True, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "description" in attrs:
            attrs["description"] = attrs["description"] or ""
        if "users" in attrs:
            attrs["users"] = tuple(member["user"]["id"] for member in attrs["users"])
        return attrs


class GroupBody(GroupUpdateBody):
    name = serializers.CharField(max_length=255)


class GroupMemberRecord(serializers.Serializer):
    joinedAt = serializers.DateTimeField()
    createdBy = serializers.CharField()
    user = AccountRecord()


class GroupRecord(NamedGroup):
    """A group with its members, and the projects in which it holds a role."""

    users = GroupMemberRecord(many=True)
    projects = Texts()
    userCount = serializers.IntegerField()


class GroupList(serializers.Serializer):
    groups = GroupRecord(many=True)


def group_record(group: Group) -> dict[str, Any]:
    members = sorted(group.memberships.all(), key=lambda member: member.user_id)
    return {
        "id": group.pk,
        "name": group.name,
        "description": group.description,
        "mappingsSSO": group.mappings_sso,
        "rootRole": group.root_role_id,
        "createdBy": group.created_by,
        "createdAt": iso(group.created_at),
        "scimId": group.scim_id,
        "users": [
            {
                "joinedAt": iso(member.joined_at),
                "createdBy": member.created_by,
                "user": make_account_record(member.user),
            }
            for member in members
        ],
        "projects": sorted({grant.project_id for grant in group.grants.all()}),
        "userCount": len(members),
    }


class GroupViewSet(ETagMixin, ViewSet):
    tags = ("Groups",)
    lookup_url_kwarg = "groupId"
    permissions = {
        "list": ROLE_READERS,
        "create": Permission.ADMIN,
        "retrieve": ROLE_READERS,
        "update": Permission.ADMIN,
        "destroy": Permission.ADMIN,
    }

    @cached_property
    def group(self) -> Group:
        return access_group(self.caller, path_id(self.kwargs["groupId"], "Group", "groupId"))

    def get_current_document(self) -> GroupDocument:
        return self.group.document()

    @extend_schema(operation_id="getGroups", responses=GroupList)
    def list(self, request: ApiRequest) -> Response:
        """List all groups with their members."""
        groups = read_groups(self.caller)
        return Response({"groups": [group_record(group) for group in groups]})

    @extend_schema(
        operation_id="createGroup", request=GroupBody, responses={201: GroupRecord}, examples=[EXAMPLE]
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a group."""
        group = actions.create_group(actions.NewGroup(**self.validated(GroupBody)), caller=self.caller)
        return Response(self._record(group.pk), status=201)

    @extend_schema(operation_id="getGroup", parameters=[GROUP_ID], responses=GroupRecord)
    def retrieve(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803 - the specification's name
        """Get a group with its members."""
        return Response(group_record(self.group))

    @extend_schema(
        operation_id="updateGroup",
        parameters=[GROUP_ID],
        request=GroupUpdateBody,
        responses=GroupRecord,
        examples=[EXAMPLE],
    )
    def update(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803
        """Update a group. Omitted properties keep their values; `users` replaces all members."""
        group_id = path_id(groupId, "Group", "groupId")
        changes = self.validated(GroupUpdateBody)
        actions.update_group(group_id, changes, expected=self.expected, caller=self.caller)
        return Response(self._record(group_id))

    @extend_schema(
        operation_id="deleteGroup",
        summary="Delete a group",
        parameters=[GROUP_ID],
        responses={
            200: None,
            400: refusal(400, "The id is not a whole number."),
            403: refusal(
                403,
                "The Admin role is missing; or the group is the last one that gives it (InvalidOperationError).",
            ),
        },
    )
    def destroy(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803
        """Delete a user group by its id.

        This deletes its memberships and the roles it grants; users, projects and roles stay.
        A group managed by an identity provider (SCIM) can be deleted too.
        """
        group_id = path_id(groupId, "Group", "groupId")
        actions.delete_group(group_id, expected=self.expected, caller=self.caller)
        return Response()

    def _record(self, group_id: int) -> dict[str, Any]:
        return group_record(access_group(self.caller, group_id))
