"""/auth/: logs in with a password and sets a new one, for scripts written for the reference server.

The session is the console's, with the same throttle, second factor and cookie. Writes with it need the CSRF token.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from allauth.account.stages import LoginStageController
from allauth.mfa.internal.constants import LoginStageKey
from django.http import HttpRequest
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.errors import (
    AppError,
    AuthenticationRequired,
    NotFound,
    ValidationError,
    check_problems,
)
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body
from flagadmin.core.http.middleware import get_client_address
from flagadmin.core.http.openapi import refusal
from groups.login.actions import check_login
from groups.login.flow import begin_login
from groups.login.passwords import choose_password, find_invited_user, request_reset
from groups.login.rules import check_passwords_on, list_password_problems
from groups.models import User
from groups.people.serializers import (
    AccountRecord,
    PasswordBody,
    RoleRecord,
    make_account_record,
)
from groups.second_factor.actions import check_code, record_wrong_code
from groups.sessions.store import read_sessions
from groups.viewsets import OpenView

CODE_NEEDED = (
    "This account has a second factor. Send a code of its app, or a recovery code, as code. "
    "With a passkey, log in at /login/."
)


class LoginBody(Body):
    username = serializers.CharField(max_length=MAX_NAME_LENGTH, help_text="User name or email address.")
    password = serializers.CharField(max_length=1000, trim_whitespace=False)
    code = serializers.CharField(
        max_length=100, required=False, help_text="Of the second factor, if the account has one."
    )


class LoggedIn(AccountRecord):
    activeSessions = serializers.IntegerField(help_text="Including this one.")
    deletedSessions = serializers.IntegerField(help_text="Always 0: a login ends no other session.")


class InvitedUser(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    email = serializers.CharField(allow_null=True)
    token = serializers.CharField()
    createdBy = serializers.CharField(allow_null=True, help_text="Always null.")
    role = RoleRecord(allow_null=True)


class ChoosePasswordBody(PasswordBody):
    token = serializers.CharField(max_length=MAX_NAME_LENGTH, help_text="The last part of the link's path.")


class EmailBody(Body):
    email = serializers.CharField(max_length=MAX_NAME_LENGTH)


class SimpleLoginView(OpenView):
    @extend_schema(
        operation_id="login",
        auth=[],
        request=LoginBody,
        responses={200: LoggedIn, 429: refusal(429)},
    )
    def post(self, request: Request) -> Response:
        """Log in with a password and get the console's session cookie.

        Writes with the session need the cookie `csrftoken` repeated in the header `X-CSRFToken`, and over HTTPS a
        `Referer`. Personal tokens need neither and are the better choice for programs.
        """
        check_passwords_on()
        body = self.validated(LoginBody)
        user = check_login(body["username"], body["password"], address=get_client_address(request._request))
        begin_session(request._request, user, body.get("code"))
        sessions = {"deletedSessions": 0, "activeSessions": read_sessions(user).count()}
        return Response(make_account_record(user) | sessions)


def begin_session(request: HttpRequest, user: User, code: str | None) -> None:
    """Logs the user in, with the code if there is a second factor; without a session otherwise.

    Raises AuthenticationRequired, TooManyRequests.
    """
    begin_login(request, user, None, how="password")
    stage = LoginStageController.enter(request, LoginStageKey.MFA_AUTHENTICATE.value)
    if stage is None:
        return
    address = get_client_address(request)
    try:
        if not code:
            raise AuthenticationRequired(CODE_NEEDED)
        stage.pass_with(check_code(user, code, address=address))
    except AppError as error:
        request.session.flush()
        if isinstance(error, ValidationError):
            record_wrong_code(user, address=address)
            raise AuthenticationRequired(error.details[0].message) from error
        raise


@contextmanager
def refusing_links() -> Iterator[None]:
    """Reports an unknown link as a wrong credential: 401."""
    try:
        yield
    except NotFound as error:
        raise AuthenticationRequired(error.message) from error


class ValidateLinkView(OpenView):
    @extend_schema(
        operation_id="validateToken",
        auth=[],
        parameters=[
            OpenApiParameter("token", str, required=True, description="Of a link for a new password.")
        ],
        responses=InvitedUser,
    )
    def get(self, request: Request) -> Response:
        """Tell whose password a link is for. The link stays valid."""
        token = request.query_params.get("token", "")
        with refusing_links():
            user = find_invited_user(token)
        role = RoleRecord(user.root_role).data if user.root_role else None
        return Response(
            {
                "id": user.pk,
                "name": user.display_name,
                "email": user.email,
                "token": token,
                "createdBy": None,
                "role": role,
            }
        )


class ChoosePasswordView(OpenView):
    @extend_schema(operation_id="changePassword", auth=[], request=ChoosePasswordBody, responses={200: None})
    def post(self, request: Request) -> Response:
        """Choose a new password with a link. The link works once; every session of the account ends."""
        body = self.validated(ChoosePasswordBody)
        with refusing_links():
            choose_password(body["token"], body["password"])
        return Response()


class ValidatePasswordView(OpenView):
    @extend_schema(operation_id="validatePassword", auth=[], request=PasswordBody, responses={200: None})
    def post(self, request: Request) -> Response:
        """Check a password against the rules. Reports all problems at once."""
        check_problems(list_password_problems(self.validated(PasswordBody)["password"], User()))
        return Response()


class PasswordEmailView(OpenView):
    @extend_schema(
        operation_id="sendResetPasswordEmail",
        auth=[],
        request=EmailBody,
        responses={200: None, 403: refusal(403, name="InvalidOperationError"), 429: refusal(429)},
    )
    def post(self, request: Request) -> Response:
        """Send a link for a new password, if an account has this email address.

        The answer is the same without such an account. Refused if the server sends no email: an admin can create a
        link.
        """
        email = self.validated(EmailBody)["email"]
        request_reset(email, address=get_client_address(request._request))
        return Response()


urlpatterns = [
    path("simple/login", SimpleLoginView.as_view(), name="simple-login"),
    path("reset/validate", ValidateLinkView.as_view()),
    path("reset/password", ChoosePasswordView.as_view()),
    path("reset/validate-password", ValidatePasswordView.as_view()),
    path("reset/password-email", PasswordEmailView.as_view()),
]
