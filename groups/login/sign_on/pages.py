"""Logging in through the identity provider, and linking it with an account.

/login/sso/ sends the browser there and /login/sso/callback/ gets it back.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from flagadmin.core.errors import AppError, BadGateway, NoAccess, ServiceUnavailable
from flagadmin.core.http.client_address import get_client_address
from groups.console import ActionPage, ConsolePage
from groups.login.actions import record_refusal
from groups.login.flow import make_safe_next
from groups.login.login_form import LoginForm, render_login
from groups.login.sign_on.identity import Identity, require_oidc
from groups.login.sign_on.linking import make_link_check, unlink_identity
from groups.login.throttle import log_failure
from groups.people.personal_tokens import get_own_user
from groups.second_factor.confirmation import is_confirmed

log = logging.getLogger("flagadmin.login")

UNFINISHED_SECONDS = 600  # as long as allauth keeps the state of a login


class SignOnPage(View):
    """Imports what it needs late: only installations with a provider load libraries for tokens and requests."""

    @method_decorator(never_cache)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_oidc()
        try:
            with translating_failures():
                return super().dispatch(request, *args, **kwargs)
        except AppError as error:
            return self.refused(error)

    def refused(self, error: AppError) -> HttpResponse:
        """The login page, which says why. Who is logged in sees it on the account page."""
        if self.request.user.is_authenticated:
            messages.error(self.request, error.message)
            return HttpResponseRedirect(reverse("account"))
        identity, address = getattr(self.request, "proven_identity", None), get_client_address(self.request)
        if isinstance(identity, Identity):
            record_refusal(identity.label, error.message, address=address)
        elif error.status < 500:  # anybody can call this page, so it writes no event
            log_failure(address, f"identity provider: {error.message}")
        next_url = self.request.GET.get("next")
        response = render_login(
            self.request, LoginForm(), next_url, status=error.status, refusal=error.message
        )
        for header, value in error.headers.items():
            response[header] = value
        return response


class StartPage(SignOnPage):
    """/login/sso/?next=/path/"""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        next_url = make_safe_next(request.GET.get("next"))
        if request.user.is_authenticated:
            return HttpResponseRedirect(next_url)
        request.session.set_expiry(UNFINISHED_SECONDS)  # until the login: anybody can begin one
        return send_to_provider(request, process="login", next_url=next_url)


class LinkPage(ConsolePage):
    """/account/sign-on/link/?check=…: begins to link the account. The account page has the link with its check."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_oidc()
        if not constant_time_compare(request.GET.get("check", ""), make_link_check(request)):
            raise NoAccess("Start on your account page.")
        if not is_confirmed(request, get_own_user(self.caller)):  # a new way to log in, like a second factor
            return redirect_to_login(request.get_full_path(), reverse("account-confirm"))
        with translating_failures():
            return send_to_provider(request, process="connect", next_url="/")


class UnlinkPage(ActionPage):
    success_url = reverse_lazy("account")

    def act(self) -> str:
        require_oidc()
        unlink_identity(get_own_user(self.caller))
        return "Unlinked. Log in with your password from now on."


class CallbackPage(SignOnPage):
    def get(self, request: HttpRequest) -> HttpResponseBase:
        from groups.login.sign_on.provider import CallbackView, Endpoints

        response: HttpResponseBase = CallbackView.adapter_view(Endpoints(request, require_oidc().issuer))(
            request
        )
        return response


def send_to_provider(request: HttpRequest, *, process: str, next_url: str) -> HttpResponse:
    from groups.login.sign_on.provider import make_provider

    return make_provider(request).redirect_to(request, process=process, next_url=next_url)


@contextmanager
def translating_failures() -> Iterator[None]:
    """Raises ServiceUnavailable if the provider cannot be reached, BadGateway if its answer is not valid."""
    from allauth.socialaccount.providers.oauth2.client import OAuth2Error
    from requests import RequestException

    try:
        yield
    except RequestException as error:
        log.warning("The identity provider cannot be reached: %s", error)
        raise ServiceUnavailable("The identity provider cannot be reached. Try again in a moment.") from error
    except OAuth2Error as error:
        log.warning("The identity provider's answer was not valid: %s", error)
        raise BadGateway("The identity provider's answer was not valid. The server log says why.") from error
