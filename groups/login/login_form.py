"""The login form, its password fields, and the input that it preserves.

/login/ renders it, and so do other pages if nobody is logged in.

Without a session, nothing is stored on the server: the login form carries the input in a hidden field. After the login,
the session stores it until the page of the form is opened. The form is then filled in, but nothing is saved.
"""

import time
from typing import Any, Literal
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import resolve
from django.utils.http import url_has_allowed_host_and_scheme

from groups.login.links import has_people, is_mail_on
from groups.second_factor.adapter import has_passkeys


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
