"""Authenticates requests: API tokens in the Authorization header, or the console's session."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from flagadmin.core.errors import AuthenticationRequired, NoAccess
from flagadmin.core.http.request_headers import read_secret
from groups.access import Caller
from groups.models import ApiToken
from groups.tokens import find_token, note_use

ADMIN_KINDS: frozenset[str] = frozenset({ApiToken.Kind.ADMIN, ApiToken.Kind.PERSONAL})


class ApiRequest(Request):
    """A type for annotations: a request whose `user` is a Caller and whose `auth` is the API token, if any."""

    if TYPE_CHECKING:
        user: Caller  # type: ignore[assignment]
        auth: ApiToken | None


def authenticate_secret(secret: str) -> tuple[Caller, ApiToken]:
    """The caller with this token. Notes its use. Raises AuthenticationRequired."""
    token = find_token(secret, now=timezone.now())
    note_use(token)
    return Caller(user=token.user, token=token), token


def read_credential(request: Request) -> str | None:
    """The secret in the Authorization header, whether or not a token with it exists."""
    return read_secret(request.META.get("HTTP_AUTHORIZATION", "")) or None


class ApiKeyAuthentication(BaseAuthentication):
    """Authenticates ``Authorization: TOKEN`` or ``Authorization: Bearer TOKEN``. The user is a Caller."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiToken] | None:
        secret = read_credential(request)
        return authenticate_secret(secret) if secret else None

    def authenticate_header(self, request: Request) -> str:
        return "ApiKey"


class ApiKeyHeaderAuthentication(ApiKeyAuthentication):
    """Also accepts ``X-API-Key: TOKEN``, if there is no Authorization header."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiToken] | None:
        key = request.META.get("HTTP_X_API_KEY", "").strip()
        if not key or request.META.get("HTTP_AUTHORIZATION", "").strip():
            return super().authenticate(request)
        return authenticate_secret(key)


class ConsoleSessionAuthentication(SessionAuthentication):
    """Accepts the console's session, for "Try it" in the API pages. Writes also need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Caller, Any] | None:
        credentials = super().authenticate(request)
        return (get_caller(request._request), None) if credentials else None


class IsCallerOfKind(BasePermission):
    """Accepts tokens of these kinds only."""

    kinds: ClassVar[frozenset[str]]

    def has_permission(self, request: Request, view: Any) -> bool:
        check_kind(request, *self.kinds)
        return True


class IsAdminCaller(IsCallerOfKind):
    """Admin API: users, service accounts and admin tokens, but no SDK tokens."""

    kinds = ADMIN_KINDS


class IsBackendCaller(IsCallerOfKind):
    """Client API: backend tokens only."""

    kinds = frozenset({ApiToken.Kind.BACKEND})


class IsFrontendCaller(IsCallerOfKind):
    """Frontend API: frontend tokens only."""

    kinds = frozenset({ApiToken.Kind.FRONTEND})


def check_kind(request: Request, *kinds: str) -> None:
    """Raises AuthenticationRequired without a token, or NoAccess naming the accepted kinds for a token of
    another kind.

    A console session counts as a personal token of its user.
    """
    if request.user is None:
        raise AuthenticationRequired
    kind = request.auth.kind if isinstance(request.auth, ApiToken) else ApiToken.Kind.PERSONAL
    if kind not in kinds:
        raise NoAccess.of_kind(kind, kinds)


def get_caller(request: HttpRequest) -> Caller:
    """The caller of a console page. Raises AuthenticationRequired if no user is logged in."""
    cached = getattr(request, "_caller", None)
    if cached is not None:
        return cached
    user = request.user
    if isinstance(user, AnonymousUser) or not user.is_active:
        raise AuthenticationRequired
    caller = Caller(user=user)
    request._caller = caller  # type: ignore[attr-defined]
    return caller


def check_known(environ: dict[str, Any]) -> None:
    """Raises AuthenticationRequired if the request has no valid token and no session.

    ``environ`` is the request's WSGI environment.
    """
    request = WSGIRequest(environ)
    sessions = import_module(settings.SESSION_ENGINE)
    request.session = sessions.SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    if (
        ApiKeyHeaderAuthentication().authenticate(Request(request)) is None
        and not get_user(request).is_active
    ):
        raise AuthenticationRequired
