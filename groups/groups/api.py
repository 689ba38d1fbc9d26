"""/api/admin/groups: people who hold roles together."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body, ListOf
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from flagadmin.http.timestamps import iso
from groups.authentication import ApiRequest
from groups.groups import actions
from groups.models import Group
from groups.people.serializers import AccountRecord, RootRoleField, account_record
from groups.permissions import Permission

TAGS = ["Groups"]
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
        child=serializers.CharField(max_length=255), required=False, help_text="Names of the group elsewhere."
    )
    rootRole = RootRoleField(required=False, allow_null=True, help_text="Id or name; null for none.")
    users = MemberBody(many=True, required=False)

    def changes(self) -> dict[str, Any]:
        data = self.validated_data
        changes = {key: data[key] for key in ("name",) if key in data}
        if "description" in data:
            changes["description"] = data["description"] or ""
        if "mappingsSSO" in data:
            changes["mappings_sso"] = data["mappingsSSO"]
        if "rootRole" in data:
            changes["root_role"] = data["rootRole"]
        if "users" in data:
            changes["users"] = tuple(member["user"]["id"] for member in data["users"])
        return changes


class GroupBody(GroupUpdateBody):
    name = serializers.CharField(max_length=255)


class GroupMemberRecord(serializers.Serializer):
    joinedAt = serializers.DateTimeField()
    createdBy = serializers.CharField()
    user = AccountRecord()


class GroupRecord(serializers.Serializer):
    """A group with its members and the projects in which it holds a role."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    mappingsSSO = serializers.ListField(child=serializers.CharField())
    rootRole = serializers.IntegerField(allow_null=True)
    createdBy = serializers.CharField()
    createdAt = serializers.DateTimeField()
    scimId = serializers.CharField(allow_null=True)
    users = GroupMemberRecord(many=True)
    projects = serializers.ListField(child=serializers.CharField())
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
                "user": account_record(member.user),
            }
            for member in members
        ],
        "projects": sorted({grant.project_id for grant in group.grants.all()}),
        "userCount": len(members),
    }


class GroupsView(APIView):
    @extend_schema(operation_id="getGroups", tags=TAGS, responses={200: GroupList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """All groups with their members."""
        groups = actions.readable_groups(request.user)
        return Response({"groups": [group_record(group) for group in groups]})

    @extend_schema(
        operation_id="createGroup",
        tags=TAGS,
        request=GroupBody,
        responses={201: GroupRecord} | refusals(400, 403, 409, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        """Add a group."""
        request.user.check(Permission.ADMIN)
        body = GroupBody(data=request.data)
        body.is_valid(raise_exception=True)
        group = actions.create_group(actions.NewGroup(**body.changes()), caller=request.user)
        return Response(group_record(actions.access_group(request.user, group.pk)), status=201)


class GroupView(APIView):
    @extend_schema(
        operation_id="getGroup",
        tags=TAGS,
        parameters=[GROUP_ID],
        responses={200: GroupRecord} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803 - the specification's name
        """One group with its members."""
        request.user.check_any(actions.READERS)
        return Response(group_record(actions.access_group(request.user, path_id(groupId, "groupId"))))

    @extend_schema(
        operation_id="updateGroup",
        tags=TAGS,
        parameters=[GROUP_ID],
        request=GroupUpdateBody,
        responses={200: GroupRecord} | refusals(400, 403, 404, 409, 415),
        examples=[EXAMPLE],
    )
    def put(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803
        """Change a group; what is not named stays. `users` is the whole list of members."""
        request.user.check(Permission.ADMIN)
        group_id = path_id(groupId, "groupId")
        body = GroupUpdateBody(data=request.data)
        body.is_valid(raise_exception=True)
        actions.update_group(group_id, body.changes(), caller=request.user)
        return Response(group_record(actions.access_group(request.user, group_id)))

    @extend_schema(
        operation_id="deleteGroup",
        summary="Delete a group",
        tags=TAGS,
        parameters=[GROUP_ID],
        responses={200: None}
        | refusals(
            404,
            descriptions={
                400: "The id is not a whole number.",
                403: "The Admin role is missing; or the group is the last that gives it (InvalidOperationError).",
            },
        ),
    )
    def delete(self, request: ApiRequest, groupId: str) -> Response:  # noqa: N803
        """Delete a user group by its id.

        Its memberships and the roles it gives end with it; people, projects and roles stay.
        A group kept by an identity provider (SCIM) may be deleted too.
        """
        request.user.check(Permission.ADMIN)
        actions.delete_group(path_id(groupId, "groupId"), caller=request.user)
        return Response()


urlpatterns = [
    path("groups", GroupsView.as_view()),
    path("groups/<str:groupId>", GroupView.as_view()),
]
