"""Takes a user with a proven identity through allauth's login stages, such as a second factor, to a session.

The login form, its password fields, and the input that it preserves.

/login/ renders it, and so do other pages if nobody is logged in.

Without a session, nothing is stored on the server: the login form carries the input in a hidden field. After the login,
the session stores it until the page of the form is opened. The form is then filled in, but nothing is saved.
"""

import ipaddress
import time
from typing import Any, Literal
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.account.signals import user_logged_in
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render, resolve_url
from django.urls import resolve
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.middleware import get_client_address
from groups.login.actions import WRONG_CREDENTIALS, record_login
from groups.login.links import has_people, is_mail_on
from groups.models import User
from groups.second_factor.passkeys import has_passkeys

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
        return ["groups.second_factor.required.SecondFactorStage"]

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


class PasswordField(forms.CharField):
    def __init__(self, autocomplete: Literal["current-password", "new-password"], **kwargs: Any) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
        super().__init__(max_length=1000, strip=False, widget=widget, **kwargs)


class NewPasswordField(PasswordField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("new-password", help_text="At least 8 characters, not a common password.", **kwargs)


SESSION_ENDED = "Your session has ended. Log in again in another tab, then try again here."


class LoginForm(forms.Form):
    username = forms.CharField(
        label="User name or email",
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = PasswordField("current-password")


def render_login(
    request: HttpRequest, form: LoginForm, next_url: str | None, *, status: int = 200, **more: str
) -> HttpResponse:
    """Renders the login form.

    ``more`` may contain ``wait`` (a message) and ``seconds`` for the throttle, ``entered``: the input
    of another form, and ``refusal``: why the login failed.
    """
    context = {
        "title": "Log in",
        "form": form,
        "next": next_url or "",
        "unclaimed": not has_people(),
        "passkeys": settings.PASSWORD_LOGIN and has_passkeys(request),
        "entered": request.POST.get("entered", ""),
        "oidc": settings.SIGN_ON,
        "password_login": settings.PASSWORD_LOGIN,
        "mail_on": is_mail_on(),
        **more,
    }
    return render(request, "login/login.html", context, status=status)


def ask_to_log_in(request: HttpRequest) -> HttpResponse:
    """Answers a form whose session has ended with the login page, which carries the submitted values."""
    page, entered = find_page(request), read_input(request)
    if not entered:
        return redirect_to_login(page)
    return render_login(request, LoginForm(), page, status=401, entered=entered)


SESSION_KEY = "kept_input"
LIFETIME_SECONDS = 3600
MAX_INPUT_LENGTH = 500_000  # characters; the login form with it still fits into the limit for request bodies
RESTORE = "restore"  # a value of the form field "do" that only renders the form with the submitted values


def read_input(request: HttpRequest) -> str:
    """The submitted values as a query string, without passwords; "" if the page cannot restore its form."""
    if not getattr(_find_view(request), "restores", False):
        return ""
    values = request.POST.copy()
    for name in list(values):
        if name == "csrfmiddlewaretoken" or "password" in name.lower():
            del values[name]
    query = values.urlencode()
    return query if len(query) <= MAX_INPUT_LENGTH else ""


def find_page(request: HttpRequest) -> str:
    """The page of the form: this URL or, if it only accepts POST, the page in the Referer header."""
    if "get" in getattr(_find_view(request), "http_method_names", ()):
        return request.get_full_path()
    referrer = urlsplit(request.headers.get("Referer", ""))
    is_own = referrer.netloc == request.get_host() and url_has_allowed_host_and_scheme(referrer.path, None)
    return referrer._replace(scheme="", netloc="", fragment="").geturl() if is_own else "/"


def _find_view(request: HttpRequest) -> object:
    try:
        return getattr(resolve(request.path_info).func, "view_class", None)
    except Http404:
        return None


def keep_input(request: HttpRequest, page: str, entered: str) -> None:
    """Stores the input until the page is opened, for one hour at most. Adds a message for the user."""
    if entered:
        request.session[SESSION_KEY] = {
            "page": page,
            "entered": entered,
            "until": time.time() + LIFETIME_SECONDS,
        }
        messages.warning(
            request,
            "Your session changed before the form was submitted, so nothing was saved. "
            "Check it and submit it again.",
        )
    else:
        messages.warning(request, "Your session changed, so nothing was done. Try again.")


def take_input(request: HttpRequest) -> QueryDict | None:
    """Returns the input stored for this page and removes it."""
    stored = request.session.get(SESSION_KEY)
    if request.method != "GET" or not stored or stored["page"] != request.get_full_path():
        return None
    del request.session[SESSION_KEY]
    if stored["until"] < time.time():
        return None
    values = QueryDict(stored["entered"], mutable=True)
    values["do"] = RESTORE
    return values
