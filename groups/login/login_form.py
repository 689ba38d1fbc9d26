"""The login form. /login/ renders it, and other pages do in place of their own when nobody is logged in."""

from django import forms
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from groups.login.kept_input import find_page, read_input
from groups.login.links import has_people
from groups.login.mail import is_mail_on
from groups.login.password_fields import PasswordField
from groups.second_factor.host import has_passkeys

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
    of another form, and ``refusal``: why there was no login.
    """
    context = {
        "title": "Log in",
        "form": form,
        "next": next_url or "",
        "unclaimed": not has_people(),
        "passkeys": settings.PASSWORD_LOGIN and has_passkeys(request),
        "entered": request.POST.get("entered", ""),
        "oidc": settings.OIDC,
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
