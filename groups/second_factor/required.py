"""FLAGADMIN_REQUIRE_SECOND_FACTOR: people without a second factor can only set one up in the console.

Asks people to confirm their identity before they change their login, because their session may be stolen.

The stage of allauth's login that asks for a second factor, see `AccountAdapter.get_login_stages`.

Import this late: it imports the code for passkeys, which takes a tenth of a second.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.errors import NoAccess
from flagadmin.core.http.error_responses import is_api, make_error_response
from groups.console import ConsolePage
from groups.models import User
from groups.second_factor.actions import describe_factor, has_second_factor

FACTOR_NEEDED = "This installation requires a second factor. Set one up on your account's page first."
# Names of URLs for setting one up, for logging out and in, and for everyone.
ALLOWED_URL_NAMES = {
    "account-confirm",
    "account-password",
    "account_login",
    "api-operation",
    "docs",
    "login",
    "login-invite",
    "login-link",
    "login-passkey",
    "logout",
    "mfa_authenticate",
    "openapi",
    "sign-on",
    "simple-login",
    "sign-on-callback",
    "theme",
    "two-step",
    "two-step-app",
    "two-step-codes",
    "two-step-passkey",
    "two-step-passkey-new",
    "two-step-remove",
}


def is_required(request: HttpRequest, user: User) -> bool:
    """Whether the setting applies to this user. The identity provider has already verified users who came
    through it.
    """
    if settings.REQUIRE_SECOND_FACTOR == "off":
        return False
    if settings.REQUIRE_SECOND_FACTOR == "admins" and not user.is_root_admin:
        return False
    return not any(login["method"] == "socialaccount" for login in get_authentication_records(request, user))


class RequireSecondFactorMiddleware:
    """Checks every view, because the admin site and the API accept the console's session too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if settings.REQUIRE_SECOND_FACTOR == "off":
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is None or match.url_name in ALLOWED_URL_NAMES or not _uses_session(request):
            return None
        user = request.user
        if not user.is_authenticated or not is_required(request, user) or has_second_factor(user):
            return None
        if is_api(request):
            return make_error_response(request, NoAccess(FACTOR_NEEDED))
        go = HttpResponseClientRedirect if "HX-Request" in request.headers else HttpResponseRedirect
        return go(reverse("two-step"))


def _uses_session(request: HttpRequest) -> bool:
    """False with an API token, to which the setting does not apply."""
    return not request.headers.get("Authorization", "").strip() or not is_api(request)


CONFIRMATION_LIFETIME = timedelta(minutes=10)


def is_confirmed(request: HttpRequest, user: User) -> bool:
    """Whether the user has logged in or confirmed their identity in the last minutes.

    Also true for an account without a password and second factor, which cannot confirm anything.
    """
    since = time.time() - CONFIRMATION_LIFETIME.total_seconds()
    if any(login["at"] > since for login in get_authentication_records(request, user)):
        return True
    return not (user.has_usable_password() or has_second_factor(user))


def confirm(request: HttpRequest, user: User, *, how: str) -> None:
    record_authentication(request, user, method=how, reauthenticated=True)


class NeedsConfirmation(ConsolePage):
    """A mixin for pages and forms that work only shortly after a confirmation."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.user.is_authenticated and not is_confirmed(request, request.user):
            return redirect_to_login(request.path, reverse("account-confirm"))
        return super().dispatch(request, *args, **kwargs)


class SecondFactorStage(AuthenticateStage):
    """Ends if the account is disabled or its password changes between the password and the code."""

    def handle(self) -> tuple[Any, bool]:
        if isinstance(self.login.user, User):
            self.state["account"] = self.login.user.get_session_auth_hash()
        return super().handle()

    def is_over(self) -> bool:
        user = self.login.user
        return (
            not isinstance(user, User)
            or not user.is_active
            or not constant_time_compare(self.state.get("account", ""), user.get_session_auth_hash())
        )

    def pass_with(self, factor: Authenticator) -> HttpResponse:
        """Continues the login after this factor was used."""
        factor.record_usage()
        name = (
            "recovery code" if factor.type == Authenticator.Type.RECOVERY_CODES else describe_factor(factor)
        )
        signal = self.login.signal_kwargs or {}
        self.login.signal_kwargs = signal | {"how": f"{signal['how']}, {name}"}
        response: HttpResponse = self.exit()
        return response
