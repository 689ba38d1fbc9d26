"""/invite/TOKEN/: signing up with an invite link, without a token of the API."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.errors import NotFound, ValidationError
from flagadmin.core.http.fields import MAX_NAME_LENGTH
from groups.open_views import OpenView
from groups.people.serializers import AccountRecord, PasswordBody, make_account_record
from groups.sign_up.actions import sign_up
from groups.sign_up.queries import open_invite_link


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
        open_invite_link(token)  # before the body is looked at
        return Response(make_account_record(sign_up(token, **self.validated(SignUpBody))), status=201)


urlpatterns = [
    path("<str:token>/validate", ValidateInviteView.as_view()),
    path("<str:token>/signup", SignUpView.as_view()),
]
