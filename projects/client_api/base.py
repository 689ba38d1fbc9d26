"""The base class of the views that SDKs call."""

from rest_framework.views import APIView

from groups.authentication import ApiKeyAuthentication, ApiRequest, IsBackendCaller
from groups.models import ApiToken


class ClientView(APIView):
    """Accepts backend tokens only, no console sessions."""

    tags = ("Client",)
    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsBackendCaller,)


def token_of(request: ApiRequest) -> ApiToken:
    """The token of an authenticated request."""
    assert request.auth is not None
    return request.auth


def environment_of(request: ApiRequest) -> str:
    """The environment of the token, whatever the body says."""
    return str(token_of(request).environment_id)
