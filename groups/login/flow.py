"""Takes a user with a proven identity through allauth's login stages, such as a second factor, to a session."""

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

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
