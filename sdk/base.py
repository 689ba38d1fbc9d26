"""The base class of the views that SDKs call."""

from typing import Any

from rest_framework.views import APIView

from flagadmin.core.errors import AuthenticationRequired, NoAccess
from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsBackendCaller, read_credential
from groups.models import ApiToken
from projects.connect.refusals import refusals


class NotesRefusals(APIView):
    """Notes what is refused for its token, for whoever connects an SDK."""

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, AuthenticationRequired | NoAccess):
            request = self.request
            refusals.note(request, read_credential(request) or request.headers.get("X-API-Key"), exc)
        return super().handle_exception(exc)


class ClientView(NotesRefusals, FreedBodies, APIView):
    """Accepts backend tokens only, no console sessions."""

    tags = ("Client",)
    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsBackendCaller,)


def get_token(request: ApiRequest) -> ApiToken:
    """The token of an authenticated request."""
    assert request.auth is not None
    return request.auth


def projects_of(token: ApiToken) -> list[str] | None:
    """The projects that a token gives access to, None for all."""
    return None if token.all_projects else list(token.scopes.values_list("project_id", flat=True))


def get_environment(request: ApiRequest) -> str:
    """The environment of the token, whatever the body says."""
    return str(get_token(request).environment_id)
