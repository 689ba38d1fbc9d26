"""FLAGADMIN_REQUIRE_SECOND_FACTOR: people without a second factor can only set one up in the console."""

from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.errors import NoAccess
from flagadmin.core.http.error_responses import is_api, make_error_response
from groups.models import User
from groups.second_factor.queries import has_second_factor

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
