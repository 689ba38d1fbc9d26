"""What the views that SDKs call share."""

from rest_framework.views import APIView

from groups.authentication import ApiKeyAuthentication, ApiRequest, IsBackendCaller
from groups.models import ApiToken

TAGS = ["Client"]


class ClientView(APIView):
    """Backend keys only; a console session has no business here."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsBackendCaller,)


def token_of(request: ApiRequest) -> ApiToken:
    """The key of a request that a permission class has let in."""
    assert request.auth is not None
    return request.auth


def environment_of(request: ApiRequest) -> str:
    """The environment is the key's, whatever a body says."""
    return str(token_of(request).environment_id)
