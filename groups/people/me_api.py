"""/api/admin/user: the caller's own account, its password and its personal tokens.

Accepts feedback from the reference server's console, so that it works here, but stores none of it.
"""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.errors import NotFound
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, Texts, path_id
from flagadmin.core.http.middleware import get_client_address
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import iso
from groups.login.passwords import change_password, check_own_password
from groups.models import User
from groups.people import personal_tokens
from groups.people.personal_tokens import get_own_user
from groups.people.serializers import (
    AccountRecord,
    PersonalToken,
    PersonalTokenBody,
    PersonalTokenList,
    RoleRecord,
    make_account_record,
)
from groups.roles.holders import read_roles
from groups.viewsets import ApiRequest, Caller, Permission, ViewSet

TOKEN_EXAMPLE = OpenApiExample(
    "A token for one laptop",
    {"description": "laptop", "expiresAt": "2027-01-31T00:00:00Z"},
    request_only=True,
)


class GrantedPermission(serializers.Serializer):
    permission = serializers.CharField()
    project = serializers.CharField(required=False, help_text="Held in this project only.")
    environment = serializers.CharField(required=False, help_text="Held in this environment only.")


class MeUser(AccountRecord):
    """An account. An admin token has `id`, `isAPI` and `username` alone."""

    id = serializers.IntegerField(allow_null=True, help_text="null for an admin token.")
    isAPI = serializers.BooleanField(help_text="Whether it is an admin token.")

    def get_fields(self) -> dict[str, serializers.Field]:
        fields = super().get_fields()
        for name in fields.keys() - {"id", "isAPI", "username"}:
            fields[name].required = False
        return fields


class Me(serializers.Serializer):
    """The account of the token or session, and all of its permissions."""

    user = MeUser()
    permissions = GrantedPermission(many=True)
    feedback = serializers.ListField(child=serializers.DictField(), help_text="Always empty.")
    splash = serializers.DictField(help_text="Always empty.")


class Profile(serializers.Serializer):
    rootRole = RoleRecord(allow_null=True, help_text="The account's own; null without one.")
    projects = Texts(
        help_text="In which the account has a role, directly or through a group.",
    )
    subscriptions = Texts(help_text="Always empty.")
    features = serializers.ListField(child=serializers.DictField(), help_text="Always empty.")


class OwnRoles(serializers.Serializer):
    version = serializers.IntegerField()
    roles = RoleRecord(many=True)


class PasswordChangeBody(Body):
    oldPassword = serializers.CharField(
        max_length=1000, required=False, allow_blank=True, trim_whitespace=False, help_text="If there is one."
    )
    password = serializers.CharField(max_length=1000, trim_whitespace=False)
    confirmPassword = serializers.CharField(max_length=1000, trim_whitespace=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["password"] != attrs["confirmPassword"]:
            raise serializers.ValidationError({"confirmPassword": "The passwords do not match."})
        return attrs


def list_permissions(caller: Caller) -> list[dict[str, str]]:
    """A sorted list of ``{permission, project?, environment?}``. For an admin, its only entry is ADMIN."""
    if caller.is_admin:
        return [{"permission": Permission.ADMIN.value}]
    permissions = sorted(
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
        for name, project, environment in permissions
    ]


class MeViewSet(ViewSet):
    tags = ("Users",)
    permissions = {"change_password": None}

    @extend_schema(operation_id="getMe", responses=Me)
    @action(detail=False, url_path="user")
    def me(self, request: ApiRequest) -> Response:
        """Get the caller's account and permissions."""
        caller = self.caller
        user = (
            make_account_record(caller.user)
            if caller.user
            else {"id": None, "isAPI": True, "username": caller.name}
        )
        return Response({"user": user, "permissions": list_permissions(caller), "feedback": [], "splash": {}})

    @extend_schema(operation_id="getProfile", responses=Profile)
    @action(detail=False, url_path="user/profile")
    def profile(self, request: ApiRequest) -> Response:
        """Get the caller's root role and the projects in which the caller has a role."""
        user = self.person()
        role = user.root_role
        profile = {
            "rootRole": RoleRecord(role).data if role else None,
            "projects": sorted(self.caller.rights.projects),
            "subscriptions": [],
            "features": [],
        }
        return Response(profile)

    @extend_schema(
        operation_id="getUserRoles",
        parameters=[OpenApiParameter("projectId", str, description="Only the roles in this project.")],
        responses=OwnRoles,
    )
    @action(detail=False, url_path="user/roles")
    def roles(self, request: ApiRequest) -> Response:
        """List the caller's roles, held directly or through a group. `project` is null for a root role."""
        roles = read_roles(self.person(), project=request.query_params.get("projectId"))
        return Response(
            {"version": 1, "roles": [RoleRecord(role).data | {"project": project} for role, project in roles]}
        )

    def person(self) -> User:
        """Raises NotFound for an admin token, as the reference server does."""
        if self.caller.user is None:
            raise NotFound("User not found: an admin token does not belong to an account.")
        return self.caller.user

    @extend_schema(
        operation_id="changeMyPassword",
        request=PasswordChangeBody,
        responses={200: None, 429: refusal(429)},
    )
    @action(methods=["post"], detail=False, url_path="user/change-password")
    def change_password(self, request: ApiRequest) -> Response:
        """Change the caller's own password. This ends every session of the account."""
        user = get_own_user(self.caller)
        data = self.validated(PasswordChangeBody)
        if user.has_usable_password():
            old = data.get("oldPassword", "")
            check_own_password(user, old, path="oldPassword", address=get_client_address(request))
        change_password(user, data["password"], caller=self.caller)
        return Response()


class PersonalTokenViewSet(ViewSet):
    """Tokens of the caller's own account. Admin tokens do not belong to an account."""

    tags = ("Personal tokens",)
    lookup_url_kwarg = "token_id"
    permissions = {"create": None, "destroy": None}
    user: User

    def authorize(self, *args: Any, **kwargs: Any) -> None:
        self.user = get_own_user(self.caller)

    @extend_schema(operation_id="getPats", responses=PersonalTokenList)
    def list(self, request: ApiRequest) -> Response:
        """List the caller's own tokens, without their secrets."""
        tokens = personal_tokens.read_personal_tokens(self.user)
        return Response({"pats": PersonalToken(tokens, many=True).data})

    @extend_schema(
        operation_id="createPat",
        request=PersonalTokenBody,
        responses={201: PersonalToken},
        examples=[TOKEN_EXAMPLE],
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a token with the caller's own permissions. Only this response contains its secret."""
        data = self.validated(PersonalTokenBody)
        token, secret = personal_tokens.create_personal_token(self.user, **data, caller=self.caller)
        return Response({**PersonalToken(token).data, "secret": secret}, status=201)

    @extend_schema(operation_id="deletePat", responses={200: None})
    def destroy(self, request: ApiRequest, token_id: str) -> Response:
        """Revoke one of the caller's own tokens, effective immediately."""
        personal_tokens.delete_personal_token(self.user, path_id(token_id, "Token"), caller=self.caller)
        return Response()


class FeedbackUpdateBody(Body):
    neverShow = serializers.BooleanField(required=False, default=False)


class FeedbackBody(FeedbackUpdateBody):
    feedbackId = serializers.CharField(max_length=MAX_NAME_LENGTH)


class FeedbackRecord(serializers.Serializer):
    userId = serializers.IntegerField()
    neverShow = serializers.BooleanField()
    given = serializers.DateTimeField()
    feedbackId = serializers.CharField()


class SplashRecord(serializers.Serializer):
    splashId = serializers.CharField()
    seen = serializers.BooleanField()


class UiErrorBody(Body):
    errorMessage = serializers.CharField(allow_blank=True)
    errorStack = serializers.CharField(allow_blank=True, required=False)


class FeedbackViewSet(ViewSet):
    tags = ("Users",)
    permissions = {"feedback": None, "update_feedback": None, "splash": None, "ui_error": None}

    @extend_schema(operation_id="createFeedback", request=FeedbackBody, responses=FeedbackRecord)
    @action(methods=["post"], detail=False)
    def feedback(self, request: ApiRequest) -> Response:
        """Accept a console's note that its user was asked for feedback. Nothing is stored."""
        body = self.validated(FeedbackBody)
        return self.answer(body["feedbackId"], body)

    @extend_schema(operation_id="updateFeedback", request=FeedbackUpdateBody, responses=FeedbackRecord)
    @action(methods=["put"], detail=False, url_path="feedback/<str:feedback_id>")
    def update_feedback(self, request: ApiRequest, feedback_id: str) -> Response:
        """Accept a change of such a note. Nothing is stored."""
        return self.answer(feedback_id, self.validated(FeedbackUpdateBody))

    def answer(self, feedback_id: str, body: dict[str, Any]) -> Response:
        return Response(
            {
                "userId": get_own_user(self.caller).pk,
                "neverShow": body["neverShow"],
                "given": iso(timezone.now()),
                "feedbackId": feedback_id,
            }
        )

    @extend_schema(operation_id="updateSplashSettings", request=None, responses=SplashRecord)
    @action(methods=["post"], detail=False, url_path="splash/<str:splash_id>")
    def splash(self, request: ApiRequest, splash_id: str) -> Response:
        """Accept a console's note that its user has seen an announcement. Nothing is stored."""
        return Response({"splashId": splash_id, "seen": True})

    @extend_schema(operation_id="uiObservability", request=UiErrorBody, responses={204: None})
    @action(methods=["post"], detail=False, url_path="record-ui-error")
    def ui_error(self, request: ApiRequest) -> Response:
        """Accept a console's report of an error in the browser. Nothing is stored."""
        self.validated(UiErrorBody)
        return Response(status=204)
