"""Pages for logging in with a password, a one-time link or the initial set-up link, and for logging out."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views import View
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.errors import AppError, AuthenticationRequired, NoAccess, TooManyRequests
from flagadmin.core.http.error_responses import is_api, make_error_response
from flagadmin.core.http.middleware import get_client_address
from flagadmin.core.lists.pages import add_problems
from groups.login.actions import check_login
from groups.login.flow import (
    SESSION_ENDED,
    LoginForm,
    NewPasswordField,
    ask_to_log_in,
    begin_login,
    find_page,
    guarded,
    keep_input,
    make_safe_next,
    read_input,
    render_login,
)
from groups.login.links import find_link, is_mail_on, use_login_link, use_setup_link
from groups.login.passwords import NO_MAIL, request_reset
from groups.login.rules import PASSWORDS_OFF
from groups.login.sign_on.pages import find_provider_logout

STALE_FORM = (
    "Your session changed after this form was opened, or another site sent it. Nothing was saved. "
    "Go back, reload the page and submit the form again."
)


LINK_SENT = "If there is an account with an email address, a link is on its way. It works once, for an hour."


class SetupForm(forms.Form):
    username = forms.CharField(
        label="User name",
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = NewPasswordField()


@guarded
class LoginPage(View):
    """/login/?next=/path/"""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated:
            return HttpResponseRedirect(make_safe_next(request.GET.get("next")))
        return render_login(request, LoginForm(), request.GET.get("next"))

    def post(self, request: HttpRequest) -> HttpResponseBase:
        form, next_url = LoginForm(request.POST), request.POST.get("next")
        if not settings.PASSWORD_LOGIN:
            return render_login(request, LoginForm(), next_url, status=403, refusal=PASSWORDS_OFF)
        if not form.is_valid():
            return render_login(request, form, next_url, status=400)
        data = form.cleaned_data
        try:
            user = check_login(data["username"], data["password"], address=get_client_address(request))
        except AuthenticationRequired as error:
            form.add_error(None, error.message)
            return render_login(request, form, next_url, status=401)
        except TooManyRequests as error:
            seconds = error.headers["Retry-After"]
            response = render_login(request, form, next_url, status=429, wait=error.message, seconds=seconds)
            response["Retry-After"] = seconds
            return response
        response = begin_login(request, user, next_url, how="password")
        if entered := request.POST.get("entered"):
            keep_input(request, make_safe_next(next_url), entered)
        return response


class ForgotForm(forms.Form):
    username = forms.CharField(
        label="User name or email",
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )


@guarded
class ForgotPasswordPage(View):
    """/login/forgot/: sends a link for a new password. It never reveals whether such an account exists."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show(request, ForgotForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form, status = ForgotForm(request.POST), 400
        if form.is_valid():
            try:
                request_reset(form.cleaned_data["username"], address=get_client_address(request))
            except AppError as error:
                form.add_error(None, error.message)
                status = error.status
            else:
                messages.success(request, LINK_SENT)
                return HttpResponseRedirect(reverse("login"))
        return self.show(request, form, status=status)

    def show(self, request: HttpRequest, form: ForgotForm, *, status: int = 200) -> HttpResponse:
        off = PASSWORDS_OFF if not settings.PASSWORD_LOGIN else "" if is_mail_on() else NO_MAIL
        context: dict[str, Any] = {
            "title": "Forgot your password?",
            "lead": off or "You get a link by email.",
        }
        if not off:
            context |= {"form": form, "button": "Send the link"}
        return render(request, "login/link.html", context, status=status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Restores a form whose CSRF token is outdated because of a login in another tab.

    This only applies if the browser sent an Origin header and the check failed because of the token.
    """
    if is_api(request) or not reason.startswith("CSRF") or "Origin" not in request.headers:
        return make_error_response(request, NoAccess(STALE_FORM))
    if not request.user.is_authenticated:
        if "HX-Request" in request.headers:  # a login page would replace the requested part of the page
            return make_error_response(request, AuthenticationRequired(SESSION_ENDED))
        return (
            ask_to_log_in(request)
            if request.path != reverse("login")
            else HttpResponseRedirect(reverse("login"))
        )
    page = find_page(request)
    keep_input(request, page, read_input(request))
    go = HttpResponseClientRedirect if "HX-Request" in request.headers else HttpResponseRedirect
    return go(page)


@guarded
class LogoutPage(View):
    """Logs out on POST only: otherwise, a link on another site could log users out.

    People who came through the identity provider may be logged out there too. The next page then links to it, because
    the content security policy forbids forms that lead to another site.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(reverse("start"))

    def post(self, request: HttpRequest) -> HttpResponse:
        provider_url = find_provider_logout(request)
        logout(request)
        if not provider_url:
            return HttpResponseRedirect(reverse("login"))
        context = {"title": "You are logged out here", "provider_url": provider_url, "oidc": settings.SIGN_ON}
        response = render(request, "login/logged_out.html", context)
        response["Refresh"] = f"0; url={provider_url}"
        return response


@guarded
class LoginLinkPage(View):
    """/login/link/TOKEN/: works once.

    A link opened from outside the browser (a terminal, an email) logs the user in at once. If another site or
    prefetching software opens it, it asks for a click first: otherwise, users could be logged in without noticing, or
    the software could use the link up.
    """

    def get(self, request: HttpRequest, token: str) -> HttpResponseBase:
        link = find_link(token)
        if link.user is None:
            return self.show_setup(request, SetupForm())
        if is_opened_by_hand(request):
            return self.use(request, token)
        context = {"title": "Log in", "form": forms.Form(), "button": f"Log in as {link.user}"}
        return render(request, "login/link.html", context)

    def post(self, request: HttpRequest, token: str) -> HttpResponseBase:
        if find_link(token).user is not None:
            return self.use(request, token)
        form = SetupForm(request.POST)
        if form.is_valid():
            try:
                user = use_setup_link(token, **form.cleaned_data)
            except AppError as error:
                if error.status == 404:
                    raise
                add_problems(form, error)
            else:
                return begin_login(request, user, reverse("start"), how="set-up")
        return self.show_setup(request, form, status=400)

    def use(self, request: HttpRequest, token: str) -> HttpResponseBase:
        user, next_path = use_login_link(token)
        return begin_login(request, user, next_path, how="link")

    def show_setup(self, request: HttpRequest, form: SetupForm, *, status: int = 200) -> HttpResponse:
        context = {
            "title": "Create the first account",
            "product": True,
            "lead": "It has the Admin role. This link works once. Next: connect your application, create a flag.",
            "form": form,
            "button": "Create account and log in",
        }
        return render(request, "login/link.html", context, status=status)


def redirect_admin_login(request: HttpRequest) -> HttpResponse:
    """Redirects the admin site's login to the console's, so that the throttle applies. Raises NoAccess."""
    if request.user.is_authenticated:
        raise NoAccess("Only users with the Admin role can open Data fixes.")
    return HttpResponseRedirect(f"{reverse('login')}?{request.META.get('QUERY_STRING', '')}")


def is_opened_by_hand(request: HttpRequest) -> bool:
    """Whether the browser's headers say that the user opened the URL directly and did not follow a link."""
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get("Sec-Fetch-Site") == "none"
        and headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
        and "Sec-Purpose" not in headers
        and "Purpose" not in headers
    )
