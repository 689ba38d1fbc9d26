"""/api/admin/api-tokens and /api/admin/projects/:projectId/api-tokens: manage API tokens."""

from collections.abc import Iterable, Sequence
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.errors import NotFound
from flagadmin.core.http.fields import Body, ListOf, Texts
from flagadmin.core.http.responses import iso
from groups.authentication import ApiRequest, read_credential
from groups.models import ApiToken
from groups.tokens import find_identifier, recover_secret
from groups.viewsets import Caller, Permission, ViewSet
from projects.project_scope import InProjectViewSet
from projects.tokens import actions
from projects.tokens.access import (
    ELLIPSIS,
    filter_by_key,
    find_readable_tokens,
    list_permissions,
    list_scope_projects,
)
from projects.tokens.actions import NewToken
from projects.tokens.pending import describe_missing

EVERY = "*"
KINDS = {"admin": "admin", "backend": "backend", "client": "backend", "frontend": "frontend"}


class KindField(serializers.CharField):
    """One of backend (older name: client), frontend and admin, in any case. Returned in lower case."""

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data).lower()
        if name not in KINDS:
            raise serializers.ValidationError(
                f"{data} is not a token type. Available: admin, backend, client, frontend."
            )
        return name


class ProjectsField(ListOf):
    """A list of project ids; ``"*"`` or ``["*"]`` means all projects."""

    child = serializers.CharField(max_length=100)

    def to_internal_value(self, data: Any) -> list[str]:
        projects: list[str] = super().to_internal_value([data] if isinstance(data, str) else data)
        if EVERY in projects and len(projects) > 1:
            raise serializers.ValidationError('"*" means all projects and cannot be combined with others.')
        return projects


class TokenCreateBody(Body):
    tokenName = serializers.CharField(max_length=255, required=False, help_text="Its name in lists.")
    username = serializers.CharField(max_length=255, required=False, help_text="Older name of tokenName.")
    type = KindField(help_text="admin, backend or frontend; client is the older name of backend.")
    environment = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        help_text="One environment; default: development.",
    )
    project = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        help_text="One project, or *. Use projects for several.",
    )
    projects = ProjectsField(
        required=False, allow_null=True, help_text='Project ids; default: ["*"], all of them.'
    )
    expiresAt = serializers.DateTimeField(required=False, allow_null=True)
    alias = serializers.CharField(max_length=255, required=False, allow_null=True, allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        named = attrs.get("tokenName") or attrs.get("username")
        if not named:
            raise serializers.ValidationError({"tokenName": "This field is required."})
        project, projects = attrs.get("project"), attrs.get("projects")
        if project is not None and projects is not None and project not in projects:
            raise serializers.ValidationError(
                {"project": f"{project} is not among projects. Send one of them."}
            )
        return attrs | {"tokenName": named}


class TokenUpdateBody(Body):
    expiresAt = serializers.DateTimeField(allow_null=True, help_text="When it stops working; null for never.")


class TokenRecord(serializers.Serializer):
    """An API token. `secret` is complete in the response that creates it, and later only for the credential
    that created it; elsewhere it is a prefix.
    """

    id = serializers.IntegerField()
    tokenName = serializers.CharField()
    environment = serializers.CharField(help_text="* for every environment.")
    projects = Texts()
    secret = serializers.CharField()
    type = serializers.CharField(help_text="admin, backend or frontend; client where it was created as such.")
    alias = serializers.CharField(allow_null=True)
    project = serializers.CharField(help_text="The projects, separated by commas; * for all, [] for none.")
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField(allow_null=True)
    seenAt = serializers.DateTimeField(allow_null=True)
    createdBy = serializers.CharField()
    pendingFor = serializers.CharField(
        required=False,
        help_text="Only for a token that does not work yet: the environment and projects that it waits for.",
    )
    secure = serializers.BooleanField(
        help_text="Whether lists have an identifier in the place of its secret. Secrets are never stored."
    )
    identifier = serializers.CharField(
        required=False,
        help_text="Only if it is secure. Names the token in paths, as its id and its secret do.",
    )


class TokenList(serializers.Serializer):
    tokens = TokenRecord(many=True)


def make_new_token(data: dict[str, Any], *, default_projects: Sequence[str] = (EVERY,)) -> NewToken:
    """The token described by a validated ``TokenCreateBody``, with defaults filled in."""
    kind = KINDS[data["type"]]
    projects = data.get("projects")
    if projects is None:
        projects = default_projects if data.get("project") is None else [data["project"]]
    environment = data.get("environment")
    if kind == ApiToken.Kind.ADMIN:
        environment = None if environment == EVERY else environment
    elif environment is None:
        environment = "development"
    return NewToken(
        name=data["tokenName"],
        kind=kind,
        type_name=data["type"],
        environment=environment,
        projects=None if list(projects) == [EVERY] else tuple(dict.fromkeys(projects)),
        expires_at=data.get("expiresAt"),
        alias=data.get("alias") or None,
    )


def make_token_record(
    token: ApiToken, projects: Iterable[str], *, secret: str | None = None
) -> dict[str, Any]:
    """``projects`` are those of the token's scope, or those that a pending token names."""
    project_ids = [EVERY] if token.all_projects else sorted(projects)
    environment = token.pending_scope["environment"] if token.pending_scope else token.environment_id
    identifier = find_identifier(token)
    record = {
        "id": token.pk,
        "tokenName": token.name,
        "environment": environment or EVERY,
        "projects": project_ids,
        "secret": secret or token.prefix + ELLIPSIS,
        "type": token.type_name or token.kind,
        "alias": token.alias,
        "project": ",".join(project_ids) or "[]",
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "seenAt": iso(token.seen_at),
        "createdBy": token.created_by,
        "secure": identifier is not None,
    }
    return record if identifier is None else record | {"identifier": identifier}


def make_token_records(
    tokens: Iterable[ApiToken], caller: Caller, credential: str | None
) -> list[dict[str, Any]]:
    """Token records without the projects that the caller may not read.

    Records of tokens created with this credential include their secrets. The caller must prefetch the tokens'
    ``scopes``.
    """
    tokens = list(tokens)
    missing = describe_missing(tokens)
    records = []
    for token in tokens:
        readable = [
            project for project in list_scope_projects(token) if project == EVERY or caller.can_read(project)
        ]
        secret = recover_secret(credential, token) if credential else None
        records.append(make_token_record(token, readable, secret=secret))
        if token.pk in missing:
            records[-1]["pendingFor"] = missing[token.pk]
    return records


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
            # Callers who cannot see a token must not conclude that it was revoked.
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
