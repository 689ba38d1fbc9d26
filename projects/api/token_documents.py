"""API tokens on the wire, in the reference's shape."""

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from flagadmin.fields import Body, ListOf
from flagadmin.times import iso
from groups.access import Caller
from groups.models import ApiToken
from groups.token_access import ELLIPSIS
from projects.actions.tokens import NewToken

EVERY = "*"
KINDS = {"admin": "admin", "backend": "backend", "client": "backend", "frontend": "frontend"}


class KindField(serializers.CharField):
    """backend (older name: client), frontend or admin, in any case."""

    def to_internal_value(self, data: Any) -> str:
        kind = KINDS.get(super().to_internal_value(data).lower())
        if kind is None:
            raise serializers.ValidationError(
                f"There is no type {data}. There are: admin, backend, client, frontend."
            )
        return kind


class ProjectsField(ListOf):
    """A list of project ids; ``"*"`` or ``["*"]`` for every project."""

    child = serializers.CharField(max_length=100)

    def to_internal_value(self, data: Any) -> list[str]:
        projects: list[str] = super().to_internal_value([data] if isinstance(data, str) else data)
        if EVERY in projects and len(projects) > 1:
            raise serializers.ValidationError('"*" means every project and stands alone.')
        return projects


class TokenCreateBody(Body):
    tokenName = serializers.CharField(max_length=255, required=False, help_text="Names it in lists.")
    username = serializers.CharField(max_length=255, required=False, help_text="Older name of tokenName.")
    type = KindField(help_text="admin, backend or frontend; client is the older name of backend.")
    environment = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        help_text="One environment; development when not given.",
    )
    project = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        help_text="One project, or *. Use projects for several.",
    )
    projects = ProjectsField(
        required=False, allow_null=True, help_text='Project ids, or ["*"] for every one.'
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

    def new_token(self, *, default_projects: list[str] | None = None) -> NewToken:
        """What was asked for. Raises ValidationError where it says nothing of projects and must."""
        data = self.validated_data
        projects = data.get("projects")
        if projects is None and data.get("project") is not None:
            projects = [data["project"]]
        if projects is None:
            projects = [EVERY] if data["type"] == ApiToken.Kind.ADMIN else default_projects
        if projects is None:
            raise serializers.ValidationError(
                {"projects": 'Name the projects this token is for, or say ["*"] for every one.'}
            )
        environment = data.get("environment")
        if data["type"] == ApiToken.Kind.ADMIN:
            environment = None if environment == EVERY else environment
        elif environment is None:
            environment = "development"
        return NewToken(
            name=data["tokenName"],
            kind=data["type"],
            environment=environment,
            projects=None if projects == [EVERY] else tuple(dict.fromkeys(projects)),
            expires_at=data.get("expiresAt"),
            alias=data.get("alias") or None,
        )


class TokenUpdateBody(Body):
    expiresAt = serializers.DateTimeField(allow_null=True, help_text="When it stops working; null for never.")


class TokenRecord(serializers.Serializer):
    """An API token. ``secret`` is the whole key in the answer to its creation, and its visible start elsewhere."""

    id = serializers.IntegerField()
    tokenName = serializers.CharField()
    environment = serializers.CharField(help_text="* for every environment.")
    projects = serializers.ListField(child=serializers.CharField())
    secret = serializers.CharField()
    type = serializers.CharField(help_text="admin, backend or frontend.")
    alias = serializers.CharField(allow_null=True)
    project = serializers.CharField(help_text="The one project, * for every one, [] for several or none.")
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField(allow_null=True)
    seenAt = serializers.DateTimeField(allow_null=True)
    createdBy = serializers.CharField()
    secure = serializers.BooleanField(
        help_text="Always false: keys have the form project:environment.secret. Only their hashes are kept."
    )


class TokenList(serializers.Serializer):
    tokens = TokenRecord(many=True)


def token_record(token: ApiToken, projects: Iterable[str], *, secret: str | None = None) -> dict[str, Any]:
    named = [EVERY] if token.all_projects else sorted(projects)
    return {
        "id": token.pk,
        "tokenName": token.name,
        "environment": token.environment_id or EVERY,
        "projects": named,
        "secret": secret or token.prefix + ELLIPSIS,
        "type": token.kind,
        "alias": token.alias,
        "project": named[0] if len(named) == 1 else "[]",
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "seenAt": iso(token.seen_at),
        "createdBy": token.created_by,
        "secure": False,
    }


def token_records(tokens: Iterable[ApiToken], caller: Caller) -> list[dict[str, Any]]:
    """``tokens`` come with their scopes prefetched. Projects that the caller may not read are left out."""
    return [
        token_record(
            token, [scope.project_id for scope in token.scopes.all() if caller.can_read(scope.project_id)]
        )
        for token in tokens
    ]
