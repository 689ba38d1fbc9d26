"""/api/admin/user/tokens: the caller's own keys."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from flagadmin.http.timestamps import iso
from groups.authentication import ApiRequest
from groups.models import ApiToken
from groups.people import personal_tokens as actions

EXAMPLE = OpenApiExample(
    "A key for one laptop",
    {"description": "laptop", "expiresAt": "2027-01-31T00:00:00Z"},
    request_only=True,
)


class PersonalTokenBody(Body):
    description = serializers.CharField(max_length=255, help_text="Names it in lists.")
    expiresAt = serializers.DateTimeField(required=False, allow_null=True, help_text="null for never.")


class PersonalToken(serializers.Serializer):
    """A personal token. ``secret`` is in the answer to its creation, and nowhere else."""

    id = serializers.IntegerField()
    description = serializers.CharField()
    expiresAt = serializers.DateTimeField(allow_null=True)
    userId = serializers.IntegerField()
    createdAt = serializers.DateTimeField()
    seenAt = serializers.DateTimeField(allow_null=True)
    secret = serializers.CharField(required=False)


class PersonalTokenList(serializers.Serializer):
    pats = PersonalToken(many=True)


def personal_token_record(token: ApiToken, secret: str | None = None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": token.pk,
        "description": token.name,
        "expiresAt": iso(token.expires_at),
        "userId": token.user_id,
        "createdAt": iso(token.created_at),
        "seenAt": iso(token.seen_at),
    }
    return record | ({"secret": secret} if secret else {})


class OwnTokensView(APIView):
    @extend_schema(
        operation_id="getPats", tags=["Personal tokens"], responses={200: PersonalTokenList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """The caller's own tokens, without their keys."""
        user = actions.own_user(request.user)
        return Response({"pats": [personal_token_record(t) for t in actions.personal_tokens(user)]})

    @extend_schema(
        operation_id="createPat",
        tags=["Personal tokens"],
        request=PersonalTokenBody,
        responses={201: PersonalToken} | refusals(400, 403, 409, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        """Make a key with the caller's own rights. Only this answer shows it."""
        user = actions.own_user(request.user)
        body = PersonalTokenBody(data=request.data)
        body.is_valid(raise_exception=True)
        token, secret = actions.create_personal_token(
            user,
            name=body.validated_data["description"],
            expires_at=body.validated_data.get("expiresAt"),
            caller=request.user,
        )
        return Response(personal_token_record(token, secret), status=201)


class OwnTokenView(APIView):
    @extend_schema(
        operation_id="deletePat", tags=["Personal tokens"], responses={200: None} | refusals(400, 403, 404)
    )
    def delete(self, request: ApiRequest, token_id: str) -> Response:
        """Revoke one of the caller's own tokens, at once."""
        user = actions.own_user(request.user)
        actions.delete_personal_token(user, path_id(token_id), caller=request.user)
        return Response()


urlpatterns = [
    path("user/tokens", OwnTokensView.as_view()),
    path("user/tokens/<str:token_id>", OwnTokenView.as_view()),
]
