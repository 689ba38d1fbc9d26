"""/login/sso/logout/: the provider says that somebody's session there has ended (OpenID Connect Back-Channel Logout).

The provider sends a signed logout token. A token for one session ends what was logged in with it; one for a person, or
for a session that is not known here, ends all sessions of the account.
"""

import time
from typing import Any

from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.http import HttpRequest, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from groups.login.passwords import log_out_everywhere
from groups.login.sign_on.identity import is_storable, require_oidc
from groups.login.sign_on.pages import translating_failures
from groups.sessions.actions import end_session
from groups.sessions.store import PROVIDER_SESSION

EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_AGE = 600  # seconds since the token was issued, after which it could be somebody's copy
KEYS_SECONDS = 5  # anybody can make this server fetch the provider's keys, so at most every few seconds

_keys: dict[
    str, tuple[float, str, dict[str, Any]]
] = {}  # by the configured issuer: when, its own issuer, its keys


@method_decorator(csrf_exempt, name="dispatch")  # the token proves who sent it
class BackChannelLogout(View):
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> JsonResponse:
        require_oidc()
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
    """The claims of a logout token, of which `sub` or `sid` is there. Raises OAuth2Error if it is not valid."""
    from allauth.socialaccount.providers.oauth2.client import OAuth2Error

    from groups.login.sign_on.provider import decode

    claims = decode(
        token,
        keys=keys,
        issuer=issuer,
        client_id=require_oidc().client_id,
        require=["iss", "aud", "iat", "jti", "events"],
    )
    events = claims["events"]
    # A nonce would make it an ID token, which browsers hold.
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
    """Ends sessions of the account that the subject logs in to. Returns how many logins are ended.

    Without a subject, only the provider's session can say whose they are. An unknown subject or session is not an
    error: there is nothing to end.
    """
    sessions = UserSession.objects.select_related("user")
    if session_id and (ended := list(sessions.filter(**{f"data__{PROVIDER_SESSION}": session_id}))):
        for session in ended:
            end_session(session.user, session.pk, caller=Caller.system())
        return len(ended)
    links = SocialAccount.objects.select_related("user").filter(
        provider=require_oidc().issuer, uid=subject or ""
    )
    users = [link.user for link in links]
    for user in users:
        log_out_everywhere(user, caller=Caller.system())
    return len(users)


def read_issuer_and_keys(request: HttpRequest) -> tuple[str, dict[str, Any]]:
    """The provider's name for itself and its JWK set. Raises requests.RequestException, OAuth2Error."""
    from groups.login.sign_on.provider import Endpoints

    entry = _keys.get(require_oidc().issuer)
    if entry is None or time.monotonic() - entry[0] > KEYS_SECONDS:
        endpoints = Endpoints(request, require_oidc().issuer)
        entry = time.monotonic(), endpoints.openid_config["issuer"], endpoints.fetch_keys()
        _keys[require_oidc().issuer] = entry
    return entry[1], entry[2]


def _make_answer(body: dict[str, str], *, status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
