"""allauth's OpenID Connect provider, with a nonce and full validation of the ID token.

allauth trusts the connection to the token endpoint and skips the signature and the nonce; userinfo may describe another
person. Here, signature, issuer, audience, times and nonce of a token must be valid.

Anyone can trigger requests to the identity provider, so their time, size and number are bounded.

The identity of a person at the provider, from the claims of the ID token and userinfo, or a SAML assertion.
"""

import hmac
import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

import jwt
import orjson
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base import Provider as AnyProvider
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import cached_property

from flagadmin.core.errors import NoAccess, NotFound
from flagadmin.core.http.outside import bound, read_bounded
from groups.login.links import make_absolute_url
from groups.login.sign_on.settings import OidcSettings, SamlSettings, SignOnSettings
from groups.models import User

LEEWAY = 60  # seconds of tolerance between clocks
NEEDED = (
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "jwks_uri",
)  # required members of the published configuration
MAX_SUBJECT_LENGTH = 191  # characters; the limit of allauth's column
# No HS256: a shared key proves less, and mixing both kinds risks key confusion.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


EXPIRED = "This login started in another browser or more than ten minutes ago. Start again."


class Endpoints(OpenIDConnectOAuth2Adapter):
    """The URLs that the provider publishes, and the requests of one login."""

    state: dict[str, Any]  # stored when the browser was sent away

    def get_provider(self) -> "Provider":
        return make_provider(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return make_absolute_url(request, reverse("sign-on-callback"))

    @cached_property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        if not isinstance(config, dict) or any(not isinstance(config.get(name), str) for name in NEEDED):
            raise OAuth2Error(f"The provider's configuration must contain {', '.join(NEEDED)}.")
        if config["issuer"].rstrip("/") != (issuer := require_provider(OidcSettings).issuer):
            raise OAuth2Error(f"The provider calls itself {config['issuer']}, not {issuer}.")
        return config

    @property
    def basic_auth(self) -> bool:
        """Whether id and secret go into the Authorization header, which is the standard's default."""
        methods = self.openid_config.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        posts = isinstance(methods, list) and "client_secret_post" in methods
        return bool(require_provider(OidcSettings).client_secret) and not posts

    def get_access_token_data(self, request: HttpRequest, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if request.GET.get("iss", self.openid_config["issuer"]) != self.openid_config["issuer"]:
            raise OAuth2Error("The answer came from another issuer.")
        token: dict[str, Any] = super().get_access_token_data(request, *args, **kwargs)
        return token

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> "IdentityLogin":
        id_token = kwargs["response"].get("id_token")
        if not isinstance(id_token, str):
            raise OAuth2Error("The provider sent no ID token.")
        claims = verify_claims(
            id_token,
            keys=self.fetch_keys(),
            issuer=self.openid_config["issuer"],
            client_id=app.client_id,
            nonce=self.state["nonce"],
        )
        if "userinfo_endpoint" in self.openid_config:
            userinfo = self._fetch_user_info(token.token)
            if userinfo.get("sub") != claims["sub"]:
                raise OAuth2Error("The userinfo endpoint answered about somebody else.")
            claims = {**userinfo, **claims}
        login = self.get_provider().sociallogin_from_response(request, claims)
        login.id_token = id_token
        return login

    def fetch_keys(self) -> dict[str, Any]:
        """The provider's JWK set."""
        with get_adapter().get_requests_session() as session:
            response = session.get(self.openid_config["jwks_uri"])
            response.raise_for_status()
            keys: dict[str, Any] = response.json()
        return keys


class Provider(OpenIDConnectProvider):
    oauth2_adapter_class = Endpoints

    def redirect_to(self, request: HttpRequest, *, process: str, next_url: str) -> HttpResponse:
        """Sends the browser to the provider. ``process`` is "login" or "connect".

        Ignores scopes and parameters in the URL of the request, which allauth would accept.
        Raises requests.RequestException, OAuth2Error if the provider's configuration cannot be read.
        """
        nonce = secrets.token_urlsafe(32)
        response: HttpResponse = self.redirect(
            request, process, next_url, auth_params={"nonce": nonce}, nonce=nonce, user_id=request.user.pk
        )
        return response

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> "IdentityLogin":
        """``response`` has the claims. They are not stored."""
        return IdentityLogin(self, response)


class IdentityLogin(SocialLogin):
    """The login of an identity. ``accounts.py``, not allauth, looks for its account."""

    _did_authenticate_by_email = None
    id_token = ""

    def __init__(self, provider: AnyProvider, claims: dict[str, Any]) -> None:
        account = SocialAccount(provider=provider.sub_id, uid=claims["sub"])
        super().__init__(user=User(), account=account, provider=provider)
        self.claims = claims

    def lookup(self) -> None:
        """Does nothing: allauth's method would also clear the data stored with a link."""


class CallbackView(OAuth2CallbackView):
    """Passes the state of this login, with its nonce, to the endpoints."""

    adapter: Endpoints

    def _get_state(self, request: HttpRequest, provider: Provider) -> tuple[Any, HttpResponse | None]:
        state, refusal = super()._get_state(request, provider)
        self.adapter.state = state or {}
        return state, refusal


def make_provider(request: HttpRequest | None) -> Provider:
    """The configured one. It is identified by its issuer, so that another provider's subjects are other people."""
    oidc = require_provider(OidcSettings)
    app = SocialApp(
        provider="openid_connect",
        provider_id=oidc.issuer,
        name=oidc.button[:40],
        client_id=oidc.client_id,
        secret=oidc.client_secret,
        settings={"server_url": oidc.issuer, "oauth_pkce_enabled": True, "scope": list(oidc.scopes)},
    )
    return Provider(request, app=app)


def verify_claims(
    id_token: str, *, keys: dict[str, Any], issuer: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """The claims of an ID token. ``keys`` is the provider's JWK set. Raises OAuth2Error if it is not valid."""
    required = ["iss", "aud", "exp", "iat", "sub"]
    claims = decode(id_token, keys=keys, issuer=issuer, client_id=client_id, require=required)
    audience = claims["aud"]
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != client_id:
        raise OAuth2Error("The ID token was made for another client.")
    if not hmac.compare_digest(str(claims.get("nonce", "")), nonce):
        raise OAuth2Error("The ID token belongs to another login.")
    if not 0 < len(claims["sub"]) <= MAX_SUBJECT_LENGTH or not is_storable(claims["sub"]):
        raise OAuth2Error(f"The subject of the ID token must have 1 to {MAX_SUBJECT_LENGTH} characters.")
    return claims


def decode(
    token: str, *, keys: dict[str, Any], issuer: str, client_id: str, require: list[str]
) -> dict[str, Any]:
    """The claims of a signed token of the provider for this client. Raises OAuth2Error."""
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            _find_key(jwt.PyJWKSet.from_dict(keys), jwt.get_unverified_header(token)),
            algorithms=ALGORITHMS,
            issuer=issuer,
            audience=client_id,
            leeway=LEEWAY,
            options={"require": require},
        )
    # PyJWT does not handle every JSON type.
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise OAuth2Error(f"The token is not valid: {error}") from error
    return claims


def _find_key(keys: jwt.PyJWKSet, header: dict[str, Any]) -> jwt.PyJWK:
    """The key that the token names, or the only key. Raises PyJWTError."""
    usable = [key for key in keys.keys if key.public_key_use in (None, "sig")]
    matching = [key for key in usable if key.key_id == header["kid"]] if "kid" in header else usable
    if len(matching) != 1:
        raise jwt.InvalidKeyError("the provider has no such key")
    return matching[0]


MAX_SECONDS = 5.0  # for one answer, and for each wait within it
MAX_BYTES = 1_000_000
# A provider that does not answer occupies at most these threads.
MAX_AT_ONCE = max(1, settings.SERVER_THREADS // 4)

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class ProviderSession(requests.Session):
    """Requires successful answers to be JSON objects. Follows no redirects: OpenID Connect has none here.

    Raises requests.RequestException, OAuth2Error.
    """

    def __init__(self) -> None:
        super().__init__()
        bound(self)

    def request(self, method: Any, url: Any, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        if not _slots.acquire(blocking=False):
            raise requests.ConnectionError(f"{MAX_AT_ONCE} requests are waiting for it already")
        try:
            until = time.monotonic() + MAX_SECONDS
            bounds: dict[str, Any] = {"timeout": MAX_SECONDS, "stream": True, "allow_redirects": False}
            response = super().request(method, url, **kwargs | bounds)
            with response:
                response._content = read_bounded(response, max_bytes=MAX_BYTES, until=until)
        finally:
            _slots.release()
        _check_answer(response)
        return response


def _check_answer(response: requests.Response) -> None:
    """Reports only the error, not the content: allauth's own messages, which are logged, would contain tokens."""
    if response.status_code >= 500:
        response.raise_for_status()
    if response.is_redirect:
        raise OAuth2Error(f"a redirect to {response.headers['location'][:200]}")
    try:
        # Refuses content that is too deep for the parsers that read it later, or not JSON.
        answer = orjson.loads(response.content)
    except ValueError as error:
        raise OAuth2Error(f"status {response.status_code}, not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise OAuth2Error("not a JSON object")
    if not response.ok:
        reasons = [str(answer[name])[:200] for name in ("error", "error_description") if name in answer]
        raise OAuth2Error(f"status {response.status_code}: {', '.join(reasons) or 'no reason'}")
    if response.request.method == "POST" and not isinstance(answer.get("access_token"), str):
        raise OAuth2Error("no access token")
    response.json = lambda **_: answer  # type: ignore[method-assign]
    response.headers["content-type"] = "application/json"


MAX_GROUPS = 1_000  # values of the claim
MAX_TEXT_LENGTH = 255  # characters
GROUPS_ELSEWHERE = ("hasgroups", "http://schemas.microsoft.com/claims/groups.link")  # of Entra ID
S = TypeVar("S", bound=SignOnSettings)
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def require_provider(kind: type[S]) -> S:
    """The settings of the provider. Raises NotFound without one of this kind."""
    if not isinstance(settings.SIGN_ON, kind):
        raise NotFound
    return settings.SIGN_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``groups`` are the values of the groups claim; None if none is configured."""

    issuer: str
    subject: str
    username: str = ""
    name: str = ""
    email: str = ""
    email_is_verified: bool = False
    email_fault: str = ""  # a sentence: why there is no verified email address
    groups: frozenset[str] | None = None

    @classmethod
    def of(cls, claims: Mapping[str, Any], provider: SignOnSettings) -> "Identity":
        """Reads an identity. Raises NoAccess if the groups are not in the claim."""
        sent = claims["attributes"] if isinstance(provider, SamlSettings) else claims
        email, is_verified = _read_email(sent, provider)
        return cls(
            issuer=provider.issuer,
            subject=claims["sub"],
            username=_read_text(claims, "preferred_username") or _read_text(claims, "upn") or email,
            name=_read_text(claims, "name"),
            email=email,
            email_is_verified=is_verified,
            email_fault=_find_email_fault(email, is_verified, sent, provider),
            groups=_read_groups(sent, provider.groups_claim) if provider.groups_claim else None,
        )

    @property
    def label(self) -> str:
        """The name by which people recognize it."""
        return self.username or self.email or self.subject

    @property
    def email_domain(self) -> str:
        return self.email.rpartition("@")[2].lower()


def _read_email(claims: Mapping[str, Any], provider: SignOnSettings) -> tuple[str, bool]:
    """The address, and whether it is verified. `email_verified` applies only to `email`; some providers
    send it as text. SAML has no such claim: there it is a list, like every attribute, and says nothing.
    """
    name = provider.email_claim
    value = claims.get(name)
    if isinstance(value, list):
        value = value[0] if value else None
    email = _read_text({name: value}, name)
    says_so = name == "email" and str(claims.get("email_verified")).lower() == "true"
    return email, bool(email) and (provider.trust_email or says_so)


def _find_email_fault(
    email: str, is_verified: bool, claims: Mapping[str, Any], provider: SignOnSettings
) -> str:
    """Names the missing claim, and claims that may have the address instead."""
    if is_verified:
        return ""
    if email:
        says_so = isinstance(provider, OidcSettings) and provider.email_claim == "email"
        claim = "email_verified" if says_so else f"{provider.prefix}TRUST_EMAIL"
        return f"The identity provider does not say that {email} is verified ({claim})."
    own = ("sub", provider.email_claim)
    sent = [
        n
        for n, value in claims.items()
        if n not in own and isinstance(value, str | list) and "@" in str(value)
    ]
    setting = f"{provider.prefix}EMAIL_{provider.claim.upper()}"
    others = f"; it sends {', '.join(sorted(sent))}, and {setting} can name one of them" if sent else ""
    return f"The identity provider sends no email address ({provider.claim} {provider.email_claim}){others}."


def _read_text(claims: Mapping[str, Any], name: str) -> str:
    """Reads a claim. One that we cannot store counts as absent, because a shortened address would be
    another address.
    """
    value = claims.get(name)
    return value.strip() if is_storable(value) else ""


def is_storable(value: Any) -> TypeGuard[str]:
    """Whether PostgreSQL can store the value: no NUL and no lone surrogates, both of which JSON allows."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and not UNSTORABLE.search(value)


def _read_groups(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """A missing claim means no groups: a provider may omit an empty list, and access must end with membership."""
    # Entra ID sends a reference instead of more than 200 groups (SAML: 150).
    elsewhere = claims.get("_claim_names")
    if (isinstance(elsewhere, Mapping) and name in elsewhere) or any(claims.get(n) for n in GROUPS_ELSEWHERE):
        raise NoAccess(
            "You are in more groups than the identity provider sends. Ask its administrators to send only those "
            "assigned to flagadmin."
        )
    values = claims.get(name)
    if values is None:  # realm_access.roles is a member of the claim realm_access
        values = claims
        for member in name.split("."):
            values = values.get(member) if isinstance(values, Mapping) else None
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list):
        return frozenset()
    if len(values) > MAX_GROUPS:
        raise NoAccess(f"The identity provider says that you are in more than {MAX_GROUPS:,} groups.")
    return frozenset(value for value in values if value and is_storable(value))
