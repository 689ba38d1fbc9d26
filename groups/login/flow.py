"""Takes a user with a proven identity through allauth's login stages, such as a second factor, to a session."""

import ipaddress
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.account.signals import user_logged_in
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.request_metrics import get_client_address
from groups.login.actions import WRONG_CREDENTIALS, record_login
from groups.models import User

guarded = method_decorator(
    [sensitive_post_parameters("password"), csrf_protect, never_cache], name="dispatch"
)
"""Decorates pages that receive a password."""


def begin_login(request: HttpRequest, user: User, next_url: str | None, *, how: str) -> HttpResponse:
    """Starts a session and redirects to `next_url`, or to the page of the second factor first.

    `how` is password, link or set-up. `AccountAdapter` does the rest when no second factor is required.
    """
    record_authentication(request, user, method=how)
    login = Login(user=user, redirect_url=make_safe_next(next_url), signal_kwargs={"how": how})
    response: HttpResponse = perform_login(request, login)
    return response


def make_safe_next(next_url: str | None) -> str:
    """``next_url`` if it is a path of this installation, otherwise the start page."""
    path = (next_url or "").strip()
    return path if is_own_path(path) else resolve_url(settings.LOGIN_REDIRECT_URL)


def is_own_path(path: str) -> bool:
    return path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)


UNKNOWN_ADDRESS = "0.0.0.0"  # noqa: S104


class AccountAdapter(DefaultAccountAdapter):
    """Named in ``settings.ACCOUNT_ADAPTER``."""

    def get_login_stages(self) -> list[str]:
        return ["groups.second_factor.stage.SecondFactorStage"]

    def pre_login(
        self,
        request: HttpRequest,
        user: AbstractBaseUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        **kwargs: Any,
    ) -> HttpResponse | None:
        """Called when the identity is proven. For the provider, allauth does not report the method."""
        if signal_kwargs is not None:
            signal_kwargs.setdefault("how", "provider")
        return super().pre_login(request, user, signal_kwargs=signal_kwargs, **kwargs)

    def post_login(
        self,
        request: HttpRequest,
        user: AbstractBaseUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        redirect_url: str | None,
        **kwargs: Any,
    ) -> HttpResponse:
        """Called once the session exists: records the login and redirects."""
        assert isinstance(user, User)
        response = HttpResponseRedirect(make_safe_next(redirect_url))
        details = signal_kwargs or {}
        user_logged_in.send(sender=User, request=request, response=response, user=user, **details)
        record_login(user, how=details["how"])
        return response

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        raise AuthenticationRequired(WRONG_CREDENTIALS)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str) -> bool:
        return is_own_path(url)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Returns the client's address for the list of sessions, which stores valid addresses only."""
        try:
            return str(ipaddress.ip_address(get_client_address(request).partition("%")[0]))
        except ValueError:
            return UNKNOWN_ADDRESS

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Adds no message: our pages show their own."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sends nothing: flagadmin sends its own mails with `groups.login.links`."""
