"""/api/admin/service-account: accounts of programs, with keys of their own."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from groups.authentication import ApiRequest
from groups.models import User
from groups.people import actions
from groups.people.actions import NewAccount
from groups.people.personal_tokens import (
    create_personal_token,
    delete_personal_token,
    personal_tokens,
    tokens_by_user,
)
from groups.people.personal_tokens_api import (
    PersonalToken,
    PersonalTokenBody,
    PersonalTokenList,
    personal_token_record,
)
from groups.people.serializers import (
    ServiceAccountBody,
    ServiceAccountList,
    ServiceAccountRecord,
    ServiceAccountUpdateBody,
    role_record,
    service_account_record,
)
from groups.permissions import Permission
from groups.roles.root_roles import root_roles

TAGS = ["Service accounts"]


class ServiceAccountsView(APIView):
    @extend_schema(
        operation_id="getServiceAccounts", tags=TAGS, responses={200: ServiceAccountList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """All service accounts, and the root roles there are."""
        found = actions.accounts(request.user, is_service=True)
        tokens = tokens_by_user(found)
        roles = [role_record(role) for role in root_roles()]
        records = [service_account_record(user, tokens.get(user.pk, ())) for user in found]
        return Response({"serviceAccounts": records, "rootRoles": roles})

    @extend_schema(
        operation_id="createServiceAccount",
        tags=TAGS,
        request=ServiceAccountBody,
        responses={201: ServiceAccountRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Add a service account. It cannot log in; its keys are made below it."""
        request.user.check(Permission.ADMIN)
        body = ServiceAccountBody(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        new = NewAccount(
            username=data["username"],
            name=data.get("name") or "",
            root_role=data.get("rootRole"),
            is_service=True,
        )
        return Response(_record(actions.create_account(new, caller=request.user)), status=201)


class ServiceAccountView(APIView):
    @extend_schema(
        operation_id="getServiceAccount",
        tags=TAGS,
        responses={200: ServiceAccountRecord} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, account_id: str) -> Response:
        """One service account."""
        return Response(_record(_account(request, account_id)))

    @extend_schema(
        operation_id="updateServiceAccount",
        tags=TAGS,
        request=ServiceAccountUpdateBody,
        responses={200: ServiceAccountRecord} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, account_id: str) -> Response:
        """Change a service account; what is not named stays."""
        request.user.check(Permission.ADMIN)
        body = ServiceAccountUpdateBody(data=request.data)
        body.is_valid(raise_exception=True)
        account = actions.update_account(
            path_id(account_id), body.changes(), is_service=True, caller=request.user
        )
        return Response(_record(account))

    @extend_schema(
        operation_id="deleteServiceAccount", tags=TAGS, responses={200: None} | refusals(400, 403, 404)
    )
    def delete(self, request: ApiRequest, account_id: str) -> Response:
        """Delete a service account with its keys, roles and memberships."""
        request.user.check(Permission.ADMIN)
        actions.delete_account(path_id(account_id), is_service=True, caller=request.user)
        return Response()


class ServiceAccountTokensView(APIView):
    @extend_schema(
        operation_id="getServiceAccountTokens",
        tags=TAGS,
        responses={200: PersonalTokenList} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, account_id: str) -> Response:
        """Its keys, without their secrets."""
        tokens = personal_tokens(_account(request, account_id))
        return Response({"pats": [personal_token_record(token) for token in tokens]})

    @extend_schema(
        operation_id="createServiceAccountToken",
        tags=TAGS,
        request=PersonalTokenBody,
        responses={201: PersonalToken} | refusals(400, 403, 404, 409, 415),
    )
    def post(self, request: ApiRequest, account_id: str) -> Response:
        """Make a key that acts as the service account. Only this answer shows it."""
        account = _account(request, account_id)
        body = PersonalTokenBody(data=request.data)
        body.is_valid(raise_exception=True)
        token, secret = create_personal_token(
            account,
            name=body.validated_data["description"],
            expires_at=body.validated_data.get("expiresAt"),
            caller=request.user,
        )
        return Response(personal_token_record(token, secret), status=201)


class ServiceAccountTokenView(APIView):
    @extend_schema(
        operation_id="deleteServiceAccountToken",
        tags=TAGS,
        responses={200: None} | refusals(400, 403, 404),
    )
    def delete(self, request: ApiRequest, account_id: str, token_id: str) -> Response:
        """Revoke one of its keys, at once."""
        account = _account(request, account_id)
        delete_personal_token(account, path_id(token_id), caller=request.user)
        return Response()


def _record(user: User) -> dict[str, Any]:
    return service_account_record(user, personal_tokens(user))


def _account(request: ApiRequest, account_id: str) -> User:
    request.user.check(Permission.ADMIN)
    return actions.access_account(request.user, path_id(account_id), is_service=True)


urlpatterns = [
    path("service-account", ServiceAccountsView.as_view()),
    path("service-account/<str:account_id>", ServiceAccountView.as_view()),
    path("service-account/<str:account_id>/token", ServiceAccountTokensView.as_view()),
    path("service-account/<str:account_id>/token/<str:token_id>", ServiceAccountTokenView.as_view()),
]
