"""/api/admin/service-account: service accounts and their tokens."""

from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.parameters import path_id
from groups.models import Role, User
from groups.models.people import AccountDocument
from groups.people import actions
from groups.people.actions import NewAccount
from groups.people.personal_tokens import (
    create_personal_token,
    delete_personal_token,
    read_personal_tokens,
    read_tokens_by_user,
)
from groups.people.queries import access_account, read_accounts
from groups.people.serializers import (
    PersonalToken,
    PersonalTokenBody,
    PersonalTokenList,
    ServiceAccountBody,
    ServiceAccountList,
    ServiceAccountRecord,
    ServiceAccountUpdateBody,
    make_personal_token_record,
    make_role_record,
    make_service_account_record,
)
from groups.viewsets import ApiRequest, Permission, ViewSet


class ServiceAccountViewSet(ETagMixin, ViewSet):
    tags = ("Service accounts",)
    lookup_url_kwarg = "account_id"
    permissions = dict.fromkeys(("list", "create", "retrieve", "update", "destroy"), Permission.ADMIN)

    @cached_property
    def account(self) -> User:
        return access_account(
            self.caller, path_id(self.kwargs["account_id"], "Service account"), is_service=True
        )

    def get_current_document(self) -> AccountDocument:
        return self.account.document()

    @extend_schema(operation_id="getServiceAccounts", responses=ServiceAccountList)
    def list(self, request: ApiRequest) -> Response:
        """List all service accounts and the available root roles."""
        accounts = read_accounts(self.caller, is_service=True)
        tokens = read_tokens_by_user(accounts)
        roles = [make_role_record(role) for role in Role.objects.root()]
        records = [make_service_account_record(user, tokens.get(user.pk, ())) for user in accounts]
        return Response({"serviceAccounts": records, "rootRoles": roles})

    @extend_schema(
        operation_id="createServiceAccount",
        request=ServiceAccountBody,
        responses={201: ServiceAccountRecord},
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a service account. It cannot log in; create its tokens separately."""
        data = self.validated(ServiceAccountBody)
        new = NewAccount(
            username=data["username"],
            name=data.get("name") or "",
            root_role=data.get("rootRole"),
            is_service=True,
        )
        return Response(_make_record(actions.create_account(new, caller=self.caller)), status=201)

    @extend_schema(operation_id="getServiceAccount", responses=ServiceAccountRecord)
    def retrieve(self, request: ApiRequest, account_id: str) -> Response:
        """Get a service account."""
        return Response(_make_record(self.account))

    @extend_schema(
        operation_id="updateServiceAccount",
        request=ServiceAccountUpdateBody,
        responses=ServiceAccountRecord,
    )
    def update(self, request: ApiRequest, account_id: str) -> Response:
        """Update a service account. Omitted properties keep their values."""
        changes = self.validated(ServiceAccountUpdateBody)
        account = actions.update_account(
            path_id(account_id, "Service account"),
            changes,
            is_service=True,
            expected=self.expected,
            caller=self.caller,
        )
        return Response(_make_record(account))

    @extend_schema(operation_id="deleteServiceAccount", responses={200: None})
    def destroy(self, request: ApiRequest, account_id: str) -> Response:
        """Delete a service account with its tokens, roles and memberships."""
        actions.delete_account(
            path_id(account_id, "Service account"),
            is_service=True,
            expected=self.expected,
            caller=self.caller,
        )
        return Response()


class ServiceAccountTokenViewSet(ViewSet):
    tags = ("Service accounts",)
    lookup_url_kwarg = "token_id"
    permissions = dict.fromkeys(("list", "create", "destroy"), Permission.ADMIN)
    account: User

    def authorize(self, account_id: str, *args: Any, **kwargs: Any) -> None:
        self.check_permission()
        self.account = access_account(self.caller, path_id(account_id, "Service account"), is_service=True)

    @extend_schema(operation_id="getServiceAccountTokens", responses=PersonalTokenList)
    def list(self, request: ApiRequest, account_id: str) -> Response:
        """List the tokens of a service account, without their secrets."""
        tokens = read_personal_tokens(self.account)
        return Response({"pats": [make_personal_token_record(token) for token in tokens]})

    @extend_schema(
        operation_id="createServiceAccountToken",
        request=PersonalTokenBody,
        responses={201: PersonalToken},
    )
    def create(self, request: ApiRequest, account_id: str) -> Response:
        """Create a token that acts as the service account. Only this response contains its secret."""
        data = self.validated(PersonalTokenBody)
        token, secret = create_personal_token(self.account, **data, caller=self.caller)
        return Response(make_personal_token_record(token, secret), status=201)

    @extend_schema(operation_id="deleteServiceAccountToken", responses={200: None})
    def destroy(self, request: ApiRequest, account_id: str, token_id: str) -> Response:
        """Revoke a token of a service account, effective immediately."""
        delete_personal_token(self.account, path_id(token_id, "Token"), caller=self.caller)
        return Response()


def _make_record(user: User) -> dict[str, Any]:
    return make_service_account_record(user, read_personal_tokens(user))
