"""The base classes of the views that SDKs call, also from other origins, and responses to contexts.

The projects and environment that an SDK token can read, and their revision.

The revision is the sum of the projects' revisions. Each of these only grows, so every change changes the sum.
Their maximum may stay the same, because revisions are assigned before they are committed.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from flagadmin.core.errors import AuthenticationRequired, NoAccess
from flagadmin.core.http.request_bodies import FreedBodies
from flagadmin.core.http.responses import not_modified
from flagadmin.core.installation.state import read_frontend_origins
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsBackendCaller, read_credential
from groups.models import ApiToken
from projects.connect.queries import refusals
from sdk.evaluation.prepared import Answer
from sdk.headers import METHODS, make_headers, make_preflight_headers


class NotesRefusals(APIView):
    """Records refusals of the request's token, to help people connect an SDK."""

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
    """The projects that a token can read; None for all."""
    return None if token.all_projects else list(token.scopes.values_list("project_id", flat=True))


def get_environment(request: ApiRequest) -> str:
    """The environment of the token, regardless of the body."""
    return str(get_token(request).environment_id)


class CorsView(NotesRefusals, FreedBodies, APIView):
    """Answers preflight requests, which browsers send without a token, with ``cors_methods``."""

    cors_methods = METHODS

    def check_permissions(self, request: Any) -> None:
        if request.method != "OPTIONS":
            super().check_permissions(request)

    @extend_schema(exclude=True)
    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        requested = request.headers.get("Access-Control-Request-Headers", "")
        return HttpResponse(status=204, headers=make_preflight_headers(requested, self.cors_methods))

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        origin, allowed = request.headers.get("Origin", ""), read_frontend_origins()
        for name, value in make_headers(origin, allowed).items():
            answer[name] = value
        return answer


def respond(answer: Answer | None) -> HttpResponse:
    """Responds. Views always have an answer, because they may evaluate."""
    assert answer is not None
    if answer.body is None:
        return not_modified(answer.etag)
    headers = {"ETag": answer.etag} if answer.etag else {}
    return HttpResponse(answer.body, content_type="application/json", headers=headers)


_ALL = """
SELECT project_id, revision FROM projects_projectrevision ORDER BY project_id COLLATE "C"
"""
_OF_SCOPES = """
SELECT project_id, revision
  FROM projects_projectrevision JOIN groups_apitokenproject t USING (project_id)
 WHERE t.token_id = %s
 ORDER BY project_id COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class TokenScope:
    """``revisions`` by project, in the order of the projects' ids (code points)."""

    environment: str
    revisions: dict[str, int]
    all_projects: bool

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(self.revisions)

    @property
    def revision(self) -> int:
        return sum(self.revisions.values())


def read_token_scope(token: ApiToken, *, using: str) -> TokenScope:
    """Reads the projects, environment and revision of a token in one SQL statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_ALL if token.all_projects else _OF_SCOPES, None if token.all_projects else [token.pk])
        return TokenScope(str(token.environment_id), dict(cursor.fetchall()), token.all_projects)
