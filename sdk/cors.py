"""Answers browsers of other origins (CORS), for the APIs that take frontend tokens."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from flagadmin.core.http.request_bodies import FreedBodies
from flagadmin.core.installation.state import read_frontend_origins
from sdk.base import NotesRefusals

PREFLIGHT_SECONDS = "3600"


class CorsView(NotesRefusals, FreedBodies, APIView):
    """Browsers send preflight requests without a token. ``cors_methods`` is what they are told."""

    cors_methods = "GET, POST, OPTIONS"

    def check_permissions(self, request: Any) -> None:
        if request.method != "OPTIONS":
            super().check_permissions(request)

    @extend_schema(exclude=True)
    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        answer = HttpResponse(status=204)
        answer["Access-Control-Allow-Methods"] = self.cors_methods
        headers = request.headers.get("Access-Control-Request-Headers", "authorization, content-type")
        answer["Access-Control-Allow-Headers"] = headers
        answer["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
        return answer

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Vary"] = "Origin, Access-Control-Request-Headers, Accept-Encoding"
        if allowed := allowed_origin(request.headers.get("Origin", "")):
            answer["Access-Control-Allow-Origin"] = allowed
            answer["Access-Control-Expose-Headers"] = "ETag"
        return answer


def allowed_origin(origin: str) -> str:
    """The Access-Control-Allow-Origin for this origin, empty if not allowed. Tokens are no cookies, so * is safe."""
    origins = read_frontend_origins()
    return "*" if "*" in origins else origin if origin in origins else ""
