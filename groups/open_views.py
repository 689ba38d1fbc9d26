"""The base class of API views that need no token, for people who are about to log in or sign up."""

from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.views import APIView

from flagadmin.core.errors import NoAccess
from flagadmin.core.http.fields import Body
from flagadmin.core.http.request_bodies import FreedBodies


class OpenView(FreedBodies, APIView):
    """Needs no token. Only takes JSON, which browsers do not send for other sites, and refuses their origins."""

    tags: ClassVar[tuple[str, ...]] = ("Login",)
    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        check_origin(request._request)

    def validated(self, body: type[Body]) -> Any:
        serializer = body(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data


def check_origin(request: HttpRequest) -> None:
    """Raises NoAccess for a request that a page of another site sent: it could log its visitors in or out."""
    origin = request.headers.get("Origin")
    own_origin = f"{request.scheme}://{request.get_host()}"
    if origin is not None and origin not in (own_origin, *settings.CSRF_TRUSTED_ORIGINS):
        raise NoAccess("Pages of other origins cannot use this.")
