"""/api/admin/invite-link/tokens: invite links. /invite/TOKEN/: signing up with one, without a token of the API."""

from typing import Any

from django.urls import path, reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.errors import NotFound, ValidationError
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body
from flagadmin.core.http.responses import iso
from groups.login.links import make_absolute_url
from groups.models import InviteLink
from groups.people.serializers import (
    AccountRecord,
    NamedAccount,
    PasswordBody,
    RoleRecord,
    RootRoleField,
    make_account_record,
)
from groups.sign_up import actions
from groups.sign_up.actions import (
    NewInviteLink,
    access_invite_link,
    open_invite_link,
    read_invite_links,
    sign_up,
)
from groups.viewsets import ApiRequest, OpenView, Permission, ViewSet

EXAMPLE = OpenApiExample(
    "A link for a team",
    {"name": "Checkout team", "expiresAt": "2027-01-31T00:00:00Z"},
    request_only=True,
)


class InviteLinkBody(Body):
    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    expiresAt = serializers.DateTimeField(source="expires_at", help_text="At most 365 days from now.")
    rootRole = RootRoleField(
        source="root_role",
        required=False,
        allow_null=True,
        help_text="Id or name of a root role other than Admin. Viewer if omitted.",
    )


class InviteLinkUpdateBody(Body):
    expiresAt = serializers.DateTimeField(source="expires_at", required=False)
    enabled = serializers.BooleanField(
        source="is_enabled", required=False, help_text="false revokes the link."
    )


class SignedUpUser(NamedAccount):
    pass


class InviteLinkRecord(serializers.Serializer):
    """Only the response to its creation contains the whole token and the link."""

    secret = serializers.CharField(help_text="The token when it is created, later its first 8 characters.")
    url = serializers.CharField(allow_null=True)
    name = serializers.CharField()
    enabled = serializers.BooleanField(help_text="false once it has expired.")
    expiresAt = serializers.DateTimeField()
    createdAt = serializers.DateTimeField()
    createdBy = serializers.CharField()
    role = RoleRecord()
    users = SignedUpUser(many=True, help_text="Who has signed up with it.")


class InviteLinkList(serializers.Serializer):
    tokens = InviteLinkRecord(many=True)


def invite_link_record(link: InviteLink, *, token: str = "", url: str | None = None) -> dict[str, Any]:
    return {
        "secret": token or link.key,
        "url": url,
        "name": link.name,
        "enabled": link.is_open(timezone.now()),
        "expiresAt": iso(link.expires_at),
        "createdAt": iso(link.created_at),
        "createdBy": link.created_by,
        "role": RoleRecord(link.role).data,
        "users": [
            {"id": user.pk, "name": user.name, "username": user.username, "email": user.email}
            for user in link.users.all()
        ],
    }


class InviteLinkViewSet(ViewSet):
    tags = ("Invite links",)
    lookup_url_kwarg = "token"
    permissions = {
        "list": Permission.ADMIN,
        "create": Permission.ADMIN,
        "retrieve": Permission.ADMIN,
        "update": Permission.ADMIN,
    }

    @extend_schema(operation_id="getAllPublicSignupTokens", responses=InviteLinkList)
    def list(self, request: ApiRequest) -> Response:
        """List all invite links and who has signed up with them."""
        return Response({"tokens": [invite_link_record(link) for link in read_invite_links(self.caller)]})

    @extend_schema(
        operation_id="createPublicSignupToken",
        request=InviteLinkBody,
        responses={201: InviteLinkRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a link with which anyone who has it can sign up, until it expires or is revoked."""
        new = NewInviteLink(**self.validated(InviteLinkBody))
        link, token = actions.create_invite_link(new, caller=self.caller)
        url = make_absolute_url(request._request, reverse("login-invite", args=[token]))
        record = invite_link_record(link, token=token, url=url)
        return Response(record, status=201, headers={"Location": f"invite-link/tokens/{link.key}"})

    @extend_schema(operation_id="getPublicSignupToken", responses=InviteLinkRecord)
    def retrieve(self, request: ApiRequest, token: str) -> Response:
        """Get an invite link, by its token or the token's first 8 characters."""
        return Response(invite_link_record(access_invite_link(self.caller, token)))

    @extend_schema(
        operation_id="updatePublicSignupToken", request=InviteLinkUpdateBody, responses=InviteLinkRecord
    )
    def update(self, request: ApiRequest, token: str) -> Response:
        """Change when an invite link expires, revoke it, or enable it again."""
        changes = self.validated(InviteLinkUpdateBody)
        if not changes:
            raise ValidationError("Send expiresAt, enabled or both.")
        return Response(invite_link_record(actions.update_invite_link(token, changes, caller=self.caller)))


class SignUpBody(PasswordBody):
    username = serializers.CharField(
        max_length=MAX_NAME_LENGTH,
        required=False,
        allow_blank=True,
        default="",
        help_text="The email address if omitted.",
    )
    email = serializers.CharField(max_length=MAX_NAME_LENGTH)
    name = serializers.CharField(max_length=MAX_NAME_LENGTH, required=False, allow_blank=True, default="")


class InviteView(OpenView):
    """An unknown, revoked or expired link is 400 here, as in the reference server."""

    tags = ("Invite links",)

    def handle_exception(self, exc: Exception) -> Any:
        return super().handle_exception(ValidationError(exc.message) if isinstance(exc, NotFound) else exc)


class ValidateInviteView(InviteView):
    @extend_schema(operation_id="validatePublicSignupToken", auth=[], responses={200: None})
    def get(self, request: Request, token: str) -> Response:
        """Check whether one can sign up with an invite link."""
        open_invite_link(token)
        return Response()


class SignUpView(InviteView):
    @extend_schema(
        operation_id="addPublicSignupTokenUser", auth=[], request=SignUpBody, responses={201: AccountRecord}
    )
    def post(self, request: Request, token: str) -> Response:
        """Create an account with the root role of the invite link. It can log in at once."""
        open_invite_link(token)  # before the body is read
        return Response(make_account_record(sign_up(token, **self.validated(SignUpBody))), status=201)


urlpatterns = [
    path("<str:token>/validate", ValidateInviteView.as_view()),
    path("<str:token>/signup", SignUpView.as_view()),
]
