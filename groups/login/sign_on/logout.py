"""Logging out at the identity provider too, when somebody logs out here (OpenID Connect RP-Initiated Logout 1.0)."""

import logging
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from groups.login.links import make_absolute_url
from groups.login.sign_on.identity import require_oidc
from groups.sessions.store import ID_TOKEN

log = logging.getLogger("flagadmin.login")

MAX_HINT_LENGTH = 6_000  # characters of an ID token: it becomes part of a URL


def keep_hint(request: HttpRequest, id_token: str) -> None:
    """Keeps in the session which login at the provider it belongs to, if people are to be logged out there."""
    if require_oidc().logout:
        request.session[ID_TOKEN] = id_token if len(id_token) <= MAX_HINT_LENGTH else ""


def find_provider_logout(request: HttpRequest) -> str:
    """The URL at the provider that ends the session there, and leads back to the login page.

    "" if this session did not begin there, this is off, or the provider has no such URL or cannot be reached: then only
    the session here ends.
    """
    oidc, id_token = settings.OIDC, request.session.get(ID_TOKEN)
    if oidc is None or not oidc.logout or id_token is None:
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

    issuer = require_oidc().issuer
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
