"""The API as a whole: its description, its documentation page, and what is not there."""

from typing import Any

from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import AuthenticationRequired, NotFound
from flagadmin.http import CONTENT_SECURITY_POLICY
from flagadmin.logs import without_secrets
from groups.authentication import ConsoleSessionAuthentication

# Swagger UI writes inline styles; this page alone may.
SWAGGER_POLICY = CONTENT_SECURITY_POLICY + "; style-src 'self' 'unsafe-inline'"


class OpenApiView(SpectacularJSONAPIView):
    """The OpenAPI document, readable without a key."""

    authentication_classes = ()
    permission_classes = ()


@extend_schema(exclude=True)
class SwaggerView(SpectacularSwaggerSplitView):
    """Swagger UI, served from here alone; a console session is enough to try an operation."""

    authentication_classes = (ConsoleSessionAuthentication,)
    permission_classes = ()
    template_name = "docs.html"
    url_name = "openapi"

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = SWAGGER_POLICY
        return response


@extend_schema(exclude=True)
class UnknownRoute(APIView):
    """Whatever else is asked for below /api/: 401 without a key, 404 with one."""

    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user is None:
            raise AuthenticationRequired
        raise NotFound(f"There is nothing at {without_secrets(request.path)}.")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound

    post = put = patch = delete = head = options = get
