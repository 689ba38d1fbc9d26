"""/api/admin/user and /api/admin/permissions: who asks, and what there is to hold."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest, client_address
from groups.login.passwords import change_password, check_own_password
from groups.people.personal_tokens import own_user
from groups.people.serializers import account_record
from groups.permissions import Permission, Scope
from groups.roles.actions import environment_names
from groups.roles.permission_serializers import PermissionRecord, permission_record

TAGS = ["Users"]


class HeldPermission(serializers.Serializer):
    permission = serializers.CharField()
    project = serializers.CharField(required=False, help_text="Held in this project alone.")
    environment = serializers.CharField(required=False, help_text="Held in this environment alone.")


class MeUser(serializers.Serializer):
    id = serializers.IntegerField(allow_null=True, help_text="null for an admin token.")
    isAPI = serializers.BooleanField()
    username = serializers.CharField()
    name = serializers.CharField(required=False)
    email = serializers.CharField(required=False, allow_null=True)


class Me(serializers.Serializer):
    """Who the key or the session belongs to, and everything they may do."""

    user = MeUser()
    permissions = HeldPermission(many=True)
    feedback = serializers.ListField(child=serializers.DictField(), help_text="Always empty.")
    splash = serializers.DictField(help_text="Always empty.")


class EnvironmentPermissions(serializers.Serializer):
    name = serializers.CharField()
    permissions = PermissionRecord(many=True)


class PermissionsByScope(serializers.Serializer):
    root = PermissionRecord(many=True)
    project = PermissionRecord(many=True)
    environments = EnvironmentPermissions(many=True)


class AllPermissions(serializers.Serializer):
    permissions = PermissionsByScope()
    version = serializers.IntegerField()


class PasswordChangeBody(Body):
    oldPassword = serializers.CharField(
        max_length=1000, required=False, allow_blank=True, trim_whitespace=False, help_text="If there is one."
    )
    password = serializers.CharField(max_length=1000, trim_whitespace=False)
    confirmPassword = serializers.CharField(max_length=1000, trim_whitespace=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["password"] != attrs["confirmPassword"]:
            raise serializers.ValidationError({"confirmPassword": "The two passwords differ."})
        return attrs


def held_permissions(caller: Caller) -> list[dict[str, str]]:
    """``{permission, project?, environment?}`` in order; an admin's one entry stands for all."""
    if caller.is_admin:
        return [{"permission": Permission.ADMIN.value}]
    held = sorted(
        (
            (name, project or "", environment or "")
            for name, project, environment in caller.rights.held
            if name
        ),
    )
    return [
        {"permission": name}
        | ({"project": project} if project else {})
        | ({"environment": environment} if environment else {})
        for name, project, environment in held
    ]


class MeView(APIView):
    @extend_schema(operation_id="getMe", tags=TAGS, responses={200: Me} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """Who asks, and what they may do."""
        caller = request.user
        user = (
            account_record(caller.user)
            if caller.user
            else {"id": None, "isAPI": True, "username": caller.name}
        )
        return Response({"user": user, "permissions": held_permissions(caller), "feedback": [], "splash": {}})


class ChangePasswordView(APIView):
    @extend_schema(
        operation_id="changeMyPassword",
        tags=TAGS,
        request=PasswordChangeBody,
        responses={200: None} | refusals(400, 403, 415, 429),
    )
    def post(self, request: ApiRequest) -> Response:
        """Change one's own password. It ends every session of the account."""
        user = own_user(request.user)
        body = PasswordChangeBody(data=request.data)
        body.is_valid(raise_exception=True)
        if user.has_usable_password():
            old = body.validated_data.get("oldPassword", "")
            check_own_password(user, old, path="oldPassword", address=client_address(request))
        change_password(user, body.validated_data["password"], caller=request.user)
        return Response()


class PermissionsView(APIView):
    @extend_schema(operation_id="getPermissions", tags=TAGS, responses={200: AllPermissions} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """Every permission there is, by where it is held."""
        by_scope: dict[Scope, list[dict[str, Any]]] = {scope: [] for scope in Scope}
        for permission in Permission:
            by_scope[permission.scope].append(permission_record(permission))
        environments = [
            {"name": name, "permissions": by_scope[Scope.ENVIRONMENT]} for name in environment_names()
        ]
        scopes = {
            "root": by_scope[Scope.ROOT],
            "project": by_scope[Scope.PROJECT],
            "environments": environments,
        }
        return Response({"permissions": scopes, "version": 1})


urlpatterns = [
    path("user", MeView.as_view()),
    path("user/change-password", ChangePasswordView.as_view()),
    path("permissions", PermissionsView.as_view()),
]
