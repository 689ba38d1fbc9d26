"""Logs in through the identity provider, and links it with an account.

/login/sso/ sends the browser there, and the browser returns to /login/sso/callback/.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import TemplateView

from flagadmin.core.errors import AppError, BadGateway, NoAccess, ServiceUnavailable, ValidationError
from flagadmin.core.http.request_metrics import get_client_address
from groups.console import ActionPage, ConfirmPage, ConsolePage
from groups.login.actions import record_refusal
from groups.login.flow import make_safe_next
from groups.login.login_form import LoginForm, render_login
from groups.login.sign_on.accounts import find_identity, make_link_check, unlink_identity, unlink_identity_of
from groups.login.sign_on.identity import Identity, require_provider
from groups.login.sign_on.settings import OidcSettings, SamlSettings, SignOnSettings
from groups.login.throttle import log_failure
from groups.models import User
from groups.people.console import OneAccount
from groups.people.personal_tokens import get_own_user
from groups.second_factor.confirmation import is_confirmed

log = logging.getLogger("flagadmin.login")

NOT_VALID = "The identity provider's answer was not valid. The server log says why."
UNFINISHED_SECONDS = 600  # allauth keeps the state of a login equally long


class SignOnPage(View):
    """Imports its dependencies late: only installations with a provider load libraries for tokens and requests."""

    @method_decorator(never_cache)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_provider(SignOnSettings)
        try:
            with translating_failures():
                return super().dispatch(request, *args, **kwargs)
        except AppError as error:
            return self.refused(error)

    def refused(self, error: AppError) -> HttpResponse:
        """The login page with the reason. A logged-in user sees it on the account page."""
        if self.request.user.is_authenticated:
            messages.error(self.request, error.message)
            return HttpResponseRedirect(reverse("account"))
        identity, address = getattr(self.request, "proven_identity", None), get_client_address(self.request)
        if isinstance(identity, Identity):
            record_refusal(identity.label, error.message, address=address)
        elif error.status < 500:  # anyone can call this page, so it writes no event
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
        request.session.set_expiry(UNFINISHED_SECONDS)  # until the login, because anyone can begin one
        return send_to_provider(request, process="login", next_url=next_url)


class LinkPage(ConsolePage):
    """/account/sign-on/link/?check=…: begins to link the account. The account page has the link with its check."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_provider(SignOnSettings)
        if not constant_time_compare(request.GET.get("check", ""), make_link_check(request)):
            raise NoAccess("Start on your account page.")
        if not is_confirmed(
            request, get_own_user(self.caller)
        ):  # it adds a way to log in, like a second factor
            return redirect_to_login(request.get_full_path(), reverse("account-confirm"))
        with translating_failures():
            return send_to_provider(request, process="connect", next_url="/")


class UnlinkPage(ActionPage):
    success_url = reverse_lazy("account")

    def act(self) -> str:
        require_provider(SignOnSettings)
        unlink_identity(get_own_user(self.caller))
        return "Unlinked. Log in with your password from now on."


@method_decorator(csrf_exempt, name="dispatch")  # the signature of an answer proves where it is from
class CallbackPage(SignOnPage):
    def get(self, request: HttpRequest) -> HttpResponseBase:
        from groups.login.sign_on.provider import CallbackView, Endpoints

        endpoints = Endpoints(request, require_provider(OidcSettings).issuer)
        response: HttpResponseBase = CallbackView.adapter_view(endpoints)(request)
        return response

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """SAML's answers."""
        require_provider(SamlSettings)
        from groups.login.sign_on.saml import AnswerError, take_answer

        try:
            return take_answer(request)
        except AnswerError as error:
            log.warning("The identity provider's answer was not valid: %s", error)
            raise ValidationError(NOT_VALID) from error


class MetadataPage(TemplateView):
    template_name = "login/saml_metadata.xml"
    content_type = "application/samlmetadata+xml"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        require_provider(SamlSettings)
        from groups.login.sign_on.saml import describe_ourselves

        return describe_ourselves(self.request)


def send_to_provider(request: HttpRequest, *, process: str, next_url: str) -> HttpResponse:
    from allauth.socialaccount.adapter import get_adapter

    provider = get_adapter().get_provider(request, "")
    response: HttpResponse = provider.redirect_to(request, process=process, next_url=next_url)
    return response


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
        raise BadGateway(NOT_VALID) from error


class UnlinkIdentityOf(OneAccount, ConfirmPage):
    def plan(self) -> dict[str, Any]:
        user = self.account()
        identity = find_identity(user)
        refusal = "Unlink your own account on your account's page." if user.pk == self.caller.id else ""
        name = identity["identity"] if identity else ""
        return {
            "title": f"Unlink {user.display_name}",
            "lead": f"{name} of {identity['provider']} no longer logs in as {user}." if identity else "",
            "removed_items": _list_removed(user) if identity else [],
            "kept": _describe_kept(user),
            "button": f"Unlink {name}",
            "blocked": refusal or ("" if identity else f"{user.display_name} is not linked."),
        }

    def act(self) -> tuple[str, str]:
        user = unlink_identity_of(self.user_id, caller=self.caller)
        return f"{user} is unlinked.", self.url


def _list_removed(user: User) -> list[str]:
    removed = ["the groups and the root role that the identity provider gave"]
    if not (settings.PASSWORD_LOGIN and user.has_usable_password()):
        removed.append("their only way to log in")
    return removed


def _describe_kept(user: User) -> str:
    sentence = "Their sessions and tokens keep working."
    if settings.SIGN_ON and settings.SIGN_ON.link_by_email and user.email:
        sentence += f" The next login at the identity provider as {user.email} links the account again."
    return sentence
