"""Answers browsers of other origins (CORS), for the APIs that take frontend tokens."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from flagadmin.core.http.request_bodies import FreedBodies
from flagadmin.core.installation.state import read_frontend_origins
from sdk.base import NotesRefusals
from sdk.cross_origin import METHODS, make_headers, make_preflight_headers


class CorsView(NotesRefusals, FreedBodies, APIView):
    """Browsers send preflight requests without a token. ``cors_methods`` is what they are told."""

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
