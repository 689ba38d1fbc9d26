"""/api/admin/api-tokens and /api/admin/projects/:projectId/api-tokens: manage API tokens."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from flagadmin.core.errors import NotFound
from groups.authentication import ApiRequest, read_credential
from groups.models import ApiToken
from groups.permissions import Permission
from groups.viewsets import ViewSet
from projects.tokens import actions
from projects.tokens.access import filter_by_key, find_readable_tokens, list_permissions
from projects.tokens.serializers import (
    TokenCreateBody,
    TokenList,
    TokenRecord,
    TokenUpdateBody,
    make_new_token,
    make_token_record,
    make_token_records,
)
from projects.viewsets import InProjectViewSet

EXAMPLE = OpenApiExample(
    "A backend token for two projects",
    {
        "tokenName": "checkout-service",
        "type": "backend",
        "environment": "production",
        "projects": ["default", "shop"],
    },
    request_only=True,
)


class TokenViewSet(ViewSet):
    """Each kind of token has its own permissions.

    Here a permission for any kind is enough; the actions check the one for the token's kind.
    """

    tags = ("API tokens",)
    lookup_url_kwarg = "token"
    permissions = {
        "list": list_permissions("READ"),
        "create": list_permissions("CREATE"),
        "retrieve": list_permissions("READ"),
        "update": list_permissions("UPDATE"),
        "destroy": list_permissions("DELETE"),
    }

    @extend_schema(operation_id="getAllApiTokens", responses=TokenList)
    def list(self, request: ApiRequest) -> Response:
        """List the tokens that the caller can read.

        Secrets are shortened, except to the credential that created the token: a client that compares secrets
        recognizes its own tokens.
        """
        tokens = find_readable_tokens(self.caller).prefetch_related("scopes")
        return Response({"tokens": make_token_records(tokens, self.caller, read_credential(request))})

    @extend_schema(
        operation_id="createApiToken",
        request=TokenCreateBody,
        responses={201: TokenRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a token. Only this response contains the whole secret, and lists read with the same credential.

        Without `projects`, or with `["*"]`, the token is for all projects, present and future. Without
        `environment`, it is for development.
        """
        new = make_new_token(self.validated(TokenCreateBody))
        return _respond_created(
            *actions.create_token(new, caller=self.caller, credential=read_credential(request))
        )

    @extend_schema(operation_id="getApiTokensByName", responses=TokenList)
    def retrieve(self, request: ApiRequest, token: str) -> Response:
        """List the tokens with this name that the caller can read."""
        tokens = find_readable_tokens(self.caller).filter(name=token).prefetch_related("scopes")
        return Response({"tokens": make_token_records(tokens, self.caller, read_credential(request))})

    @extend_schema(operation_id="updateApiToken", request=TokenUpdateBody, responses={200: None})
    def update(self, request: ApiRequest, token: str) -> Response:
        """Change when a token expires. The path names the token by its id, its secret or its identifier."""
        expires_at = self.validated(TokenUpdateBody)["expiresAt"]
        actions.update_token(token, expires_at=expires_at, caller=self.caller)
        return Response()

    @extend_schema(operation_id="deleteApiToken", responses={200: None})
    def destroy(self, request: ApiRequest, token: str) -> Response:
        """Revoke a token, effective immediately. The path names the token by its id, its secret or its identifier.

        To an admin, the response is 200 for a token that does not exist too, so that a script can run again.
        """
        try:
            actions.delete_token(token, caller=self.caller)
        except NotFound:
            # Others might take a token for revoked that they only cannot see.
            if not self.caller.is_admin or filter_by_key(ApiToken.objects.all(), token).exists():
                raise
        return Response()


class ProjectTokenViewSet(InProjectViewSet):
    tags = ("API tokens",)
    lookup_url_kwarg = "token"
    permissions = {
        "list": Permission.READ_PROJECT_API_TOKEN,
        "create": Permission.CREATE_PROJECT_API_TOKEN,
        "destroy": Permission.DELETE_PROJECT_API_TOKEN,
    }

    @extend_schema(operation_id="getProjectApiTokens", responses=TokenList)
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the tokens whose scope includes this project."""
        tokens = ApiToken.objects.filter(projects=project_id).prefetch_related("scopes")
        return Response({"tokens": make_token_records(tokens, self.caller, read_credential(request))})

    @extend_schema(
        operation_id="createProjectApiToken",
        request=TokenCreateBody,
        responses={201: TokenRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Create a token for this project only."""
        new = make_new_token(self.validated(TokenCreateBody), default_projects=[project_id])
        return _respond_created(
            *actions.create_project_token(
                project_id, new, caller=self.caller, credential=read_credential(request)
            )
        )

    @extend_schema(operation_id="deleteProjectApiToken", responses={200: None})
    def destroy(self, request: ApiRequest, project_id: str, token: str) -> Response:
        """Revoke a token of this project, effective immediately."""
        actions.delete_project_token(project_id, token, caller=self.caller)
        return Response()


def _respond_created(token: ApiToken, secret: str) -> Response:
    record = make_token_record(token, actions.read_scope(token), secret=secret)
    return Response(record, status=201, headers={"Location": f"api-tokens/{token.pk}"})
