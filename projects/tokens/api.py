"""/api/admin/api-tokens and /api/admin/projects/:id/api-tokens: the keys of SDKs and of the admin API."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.models import ApiToken
from groups.permissions import Permission
from projects.access import access_project
from projects.tokens import actions
from projects.tokens.access import readable_tokens
from projects.tokens.serializers import (
    TokenCreateBody,
    TokenList,
    TokenRecord,
    TokenUpdateBody,
    token_record,
    token_records,
)

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


class TokensView(APIView):
    @extend_schema(
        operation_id="getAllApiTokens", tags=["API tokens"], responses={200: TokenList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """All tokens that the caller may read. Keys are cut to their visible start."""
        tokens = readable_tokens(request.user).prefetch_related("scopes")
        return Response({"tokens": token_records(tokens, request.user)})

    @extend_schema(
        operation_id="createApiToken",
        tags=["API tokens"],
        request=TokenCreateBody,
        responses={201: TokenRecord} | refusals(400, 403, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        """Make a token. The answer is the only place where its whole key is ever shown.

        Without projects it is for every project, present and future, as with `["*"]`; without an environment it is
        for development.
        """
        actions.check_any_kind(request.user, "CREATE")
        body = TokenCreateBody(data=request.data)
        body.is_valid(raise_exception=True)
        return _created(*actions.create_token(body.new_token(), caller=request.user))


class TokenView(APIView):
    @extend_schema(
        operation_id="getApiTokensByName", tags=["API tokens"], responses={200: TokenList} | refusals(403)
    )
    def get(self, request: ApiRequest, token: str) -> Response:
        """The tokens of this name that the caller may read."""
        tokens = readable_tokens(request.user).filter(name=token).prefetch_related("scopes")
        return Response({"tokens": token_records(tokens, request.user)})

    @extend_schema(
        operation_id="updateApiToken",
        tags=["API tokens"],
        request=TokenUpdateBody,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, token: str) -> Response:
        """Change when a token expires. It is named by its id, or by its key."""
        actions.check_any_kind(request.user, "UPDATE")
        body = TokenUpdateBody(data=request.data)
        body.is_valid(raise_exception=True)
        actions.update_token(token, expires_at=body.validated_data["expiresAt"], caller=request.user)
        return Response()

    @extend_schema(
        operation_id="deleteApiToken", tags=["API tokens"], responses={200: None} | refusals(403, 404)
    )
    def delete(self, request: ApiRequest, token: str) -> Response:
        """Revoke a token, at once. It is named by its id, or by its key."""
        actions.delete_token(token, caller=request.user)
        return Response()


class ProjectTokensView(APIView):
    @extend_schema(
        operation_id="getProjectApiTokens",
        tags=["API tokens"],
        responses={200: TokenList} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The tokens that name this project."""
        access_project(request.user, project_id)
        request.user.check(Permission.READ_PROJECT_API_TOKEN, project=project_id)
        tokens = ApiToken.objects.filter(projects=project_id).prefetch_related("scopes")
        return Response({"tokens": token_records(tokens, request.user)})

    @extend_schema(
        operation_id="createProjectApiToken",
        tags=["API tokens"],
        request=TokenCreateBody,
        responses={201: TokenRecord} | refusals(400, 403, 404, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Make a token for this project alone."""
        access_project(request.user, project_id)
        request.user.check(Permission.CREATE_PROJECT_API_TOKEN, project=project_id)
        body = TokenCreateBody(data=request.data)
        body.is_valid(raise_exception=True)
        new = body.new_token(default_projects=[project_id])
        return _created(*actions.create_project_token(project_id, new, caller=request.user))


class ProjectTokenView(APIView):
    @extend_schema(
        operation_id="deleteProjectApiToken",
        tags=["API tokens"],
        responses={200: None} | refusals(403, 404),
    )
    def delete(self, request: ApiRequest, project_id: str, token: str) -> Response:
        """Revoke a token of this project, at once."""
        actions.delete_project_token(project_id, token, caller=request.user)
        return Response()


def _created(token: ApiToken, secret: str) -> Response:
    record = token_record(token, actions.scope_of(token), secret=secret)
    return Response(record, status=201, headers={"Location": f"api-tokens/{token.pk}"})


urlpatterns = [
    path("api-tokens", TokensView.as_view()),
    path("api-tokens/<str:token>", TokenView.as_view()),
    path("projects/<str:project_id>/api-tokens", ProjectTokensView.as_view()),
    path("projects/<str:project_id>/api-tokens/<str:token>", ProjectTokenView.as_view()),
]
