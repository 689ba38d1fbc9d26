"""Logging out at the identity provider and here: whichever side ends a session ends it on the other.

The provider sends a signed logout token. A token for one session ends the logins made with it; a token for a person, or
for a session unknown here, ends all sessions of the account.
"""

import logging
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from groups.login.links import make_absolute_url
from groups.login.passwords import log_out_everywhere
from groups.login.sign_on.identity import is_storable, require_provider
from groups.login.sign_on.pages import translating_failures
from groups.login.sign_on.settings import OidcSettings
from groups.sessions.actions import end_session
from groups.sessions.store import ID_TOKEN, PROVIDER_SESSION

log = logging.getLogger("flagadmin.login")

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
