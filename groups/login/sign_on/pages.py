"""Logs in through the identity provider, and links it with an account.

/login/sso/ sends the browser there, and the browser returns to /login/sso/callback/.

Logging out at the identity provider and here: whichever side ends a session ends it on the other.

The provider sends a signed logout token. A token for one session ends the logins made with it; a token for a person, or
for a session unknown here, ends all sessions of the account.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.urls import reverse, reverse_lazy
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import TemplateView

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError, BadGateway, NoAccess, ServiceUnavailable, ValidationError
from flagadmin.core.http.middleware import get_client_address
from groups.access import Caller
from groups.console import ActionPage, ConfirmPage, ConsolePage
from groups.login.actions import record_refusal
from groups.login.flow import LoginForm, make_safe_next, render_login
from groups.login.links import make_absolute_url
from groups.login.passwords import log_failure, log_out_everywhere
from groups.login.sign_on.accounts import find_identity, make_link_check, unlink_identity, unlink_identity_of
from groups.login.sign_on.provider import Identity, is_storable, require_provider
from groups.login.sign_on.settings import OidcSettings, SamlSettings, SignOnSettings
from groups.models import User
from groups.people.console import OneAccount
from groups.people.personal_tokens import get_own_user
from groups.second_factor.required import is_confirmed
from groups.sessions.store import ID_TOKEN, PROVIDER_SESSION, end_session

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


MAX_HINT_LENGTH = 6_000  # characters of an ID token: it becomes part of a URL


def keep_hint(request: HttpRequest, id_token: str) -> None:
    """Stores the provider's login in the session, if people are to be logged out there."""
    if isinstance(settings.SIGN_ON, OidcSettings) and settings.SIGN_ON.logout:
        request.session[ID_TOKEN] = id_token if len(id_token) <= MAX_HINT_LENGTH else ""


def find_provider_logout(request: HttpRequest) -> str:
    """The provider's URL that ends the session there and leads back to the login page.

    "" if this session did not begin there, this is off, or the provider has no such URL or cannot be reached: then only
    the session here ends.
    """
    oidc, id_token = settings.SIGN_ON, request.session.get(ID_TOKEN)
    if not isinstance(oidc, OidcSettings) or not oidc.logout or id_token is None:
        return ""
    endpoint = _read_endpoint(request)
    if not endpoint:
        return ""
    query = {
        "client_id": oidc.client_id,
        "post_logout_redirect_uri": make_absolute_url(request, reverse("login")),
        **({"id_token_hint": id_token} if id_token else {}),
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def _read_endpoint(request: HttpRequest) -> str:
    """Reads the endpoint from the provider's configuration; "" if there is none with the scheme of its issuer."""
    from allauth.socialaccount.providers.oauth2.client import OAuth2Error
    from requests import RequestException

    from groups.login.sign_on.provider import Endpoints

    issuer = require_provider(OidcSettings).issuer
    try:
        endpoint = Endpoints(request, issuer).openid_config.get("end_session_endpoint")
    except (RequestException, OAuth2Error) as error:
        log.warning("Nobody is logged out at the identity provider: %s", error)
        return ""
    if (
        not isinstance(endpoint, str)
        or not endpoint.isascii()
        or not endpoint.isprintable()
        or " " in endpoint
    ):
        return ""
    return endpoint if urlsplit(endpoint).scheme == urlsplit(issuer).scheme else ""


EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_AGE = 600  # seconds after issue; an older token could be a stolen copy
KEYS_SECONDS = 5  # anyone can make this server fetch the provider's keys, so at most once in this time

_keys: dict[
    str, tuple[float, str, dict[str, Any]]
] = {}  # by the configured issuer: the time, the provider's own issuer, its keys


@method_decorator(csrf_exempt, name="dispatch")  # the token authenticates the sender
class BackChannelLogout(View):
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> JsonResponse:
        require_provider(OidcSettings)
        from allauth.socialaccount.providers.oauth2.client import OAuth2Error

        with translating_failures():
            issuer, keys = read_issuer_and_keys(request)
        try:
            claims = verify_logout_token(request.POST.get("logout_token", ""), issuer=issuer, keys=keys)
        except OAuth2Error as error:
            return _make_answer({"error": "invalid_request", "error_description": str(error)}, status=400)
        end_sessions(subject=claims.get("sub"), session_id=claims.get("sid"))
        return _make_answer({})


def verify_logout_token(token: str, *, issuer: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The claims of a logout token, with at least `sub` or `sid`. Raises OAuth2Error if it is not valid."""
    from allauth.socialaccount.providers.oauth2.client import OAuth2Error

    from groups.login.sign_on.provider import decode

    claims = decode(
        token,
        keys=keys,
        issuer=issuer,
        client_id=require_provider(OidcSettings).client_id,
        require=["iss", "aud", "iat", "jti", "events"],
    )
    events = claims["events"]
    # A nonce would make it an ID token, which browsers have.
    if not isinstance(events, dict) or not isinstance(events.get(EVENT), dict) or "nonce" in claims:
        raise OAuth2Error("This is not a logout token.")
    if claims["iat"] < time.time() - MAX_AGE:
        raise OAuth2Error("The logout token is too old.")
    ids = [claims[name] for name in ("sub", "sid") if name in claims]
    if not ids or not all(value and is_storable(value) for value in ids):
        raise OAuth2Error("The logout token must name a subject (sub) or a session (sid).")
    return claims


@transactional
def end_sessions(*, subject: str | None, session_id: str | None) -> int:
    """Ends sessions of the subject's account. Returns the number of ended logins.

    Without a subject, the provider's session identifies the account. An unknown subject or session is not an error:
    there is nothing to end.
    """
    sessions = UserSession.objects.select_related("user")
    if session_id and (ended := list(sessions.filter(**{f"data__{PROVIDER_SESSION}": session_id}))):
        for session in ended:
            end_session(session.user, session.pk, caller=Caller.system())
        return len(ended)
    links = SocialAccount.objects.select_related("user").filter(
        provider=require_provider(OidcSettings).issuer, uid=subject or ""
    )
    users = [link.user for link in links]
    for user in users:
        log_out_everywhere(user, caller=Caller.system())
    return len(users)


def read_issuer_and_keys(request: HttpRequest) -> tuple[str, dict[str, Any]]:
    """The provider's own issuer name and its JWK set. Raises requests.RequestException, OAuth2Error."""
    from groups.login.sign_on.provider import Endpoints

    entry = _keys.get(require_provider(OidcSettings).issuer)
    if entry is None or time.monotonic() - entry[0] > KEYS_SECONDS:
        endpoints = Endpoints(request, require_provider(OidcSettings).issuer)
        entry = time.monotonic(), endpoints.openid_config["issuer"], endpoints.fetch_keys()
        _keys[require_provider(OidcSettings).issuer] = entry
    return entry[1], entry[2]


def _make_answer(body: dict[str, str], *, status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
