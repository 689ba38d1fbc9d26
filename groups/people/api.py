"""/api/admin/user-admin: users, accounts that can be given access, inactive people, and the number of
administrators.

/api/admin/service-account: service accounts and their tokens.
"""

from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import check_problems
from flagadmin.core.http.fields import Body, ListOf, path_id
from flagadmin.core.http.responses import iso
from groups.groups.actions import find_offered_groups
from groups.login.links import make_absolute_url, send_invitation
from groups.login.passwords import change_password, create_first_link, reset_password
from groups.login.rules import list_password_problems
from groups.models import Role, User
from groups.models.people import AccountDocument
from groups.people import actions
from groups.people.actions import (
    NewAccount,
    delete_inactive_people,
    find_admins_who_log_in,
    read_inactive_people,
)
from groups.people.personal_tokens import (
    confirm_account,
    create_personal_token,
    delete_personal_token,
    list_custodies,
    read_personal_tokens,
    read_tokens_by_user,
)
from groups.people.queries import access_account, find_person, read_accounts
from groups.people.serializers import (
    AccountRecord,
    AdminCount,
    Candidates,
    CreatedPersonRecord,
    CustodyRecord,
    NamedAccount,
    PasswordBody,
    PeopleList,
    PersonalToken,
    PersonalTokenBody,
    PersonalTokenList,
    PersonBody,
    PersonRecord,
    PersonUpdateBody,
    ResetPasswordBody,
    ResetPasswordRecord,
    RoleRecord,
    ServiceAccountBody,
    ServiceAccountList,
    ServiceAccountRecord,
    ServiceAccountUpdateBody,
    make_account_record,
    make_candidate_record,
    make_service_account_record,
)
from groups.permissions import BuiltIn, Permission
from groups.viewsets import ApiRequest, ViewSet

SEARCH_LIMIT = 100
GIVE_ACCESS = (Permission.ADMIN, Permission.UPDATE_PROJECT, Permission.PROJECT_USER_ACCESS_WRITE)


class CandidateViewSet(ViewSet):
    """Accounts that can be given a role. For callers who can assign roles in some project."""

    tags = ("People",)
    permissions = {"search": GIVE_ACCESS, "access": GIVE_ACCESS}

    def authorize(self, *args: Any, **kwargs: Any) -> None:
        self.caller.check_anywhere(self.needed_permissions)

    @extend_schema(
        operation_id="searchUsers",
        parameters=[OpenApiParameter("q", str, description="Part of a name, username or email address.")],
        responses=AccountRecord(many=True),
    )
    @action(detail=False)
    def search(self, request: ApiRequest) -> Response:
        """Search users by name, username or email address. Returns at most 100."""
        part = request.query_params.get("q", "").strip()
        if not part:
            return Response([])
        matches = Q(username__icontains=part) | Q(name__icontains=part) | Q(email__icontains=part)
        people = User.objects.people().filter(matches).order_by("username")
        return Response([make_account_record(user) for user in people[:SEARCH_LIMIT]])

    @extend_schema(operation_id="getBaseUsersAndGroups", responses=Candidates)
    @action(detail=False)
    def access(self, request: ApiRequest) -> Response:
        """List the accounts and groups that can be given access to a project.

        Those who may not list groups get their own, and those with a role in a project that they can read.
        """
        groups = find_offered_groups(self.caller).order_by("id").values("id", "name", "description")
        users = [make_candidate_record(user) for user in User.objects.order_by("id")]
        return Response({"users": users, "groups": list(groups)})


class UserViewSet(ETagMixin, ViewSet):
    tags = ("People",)
    lookup_url_kwarg = "user_id"
    permissions = {
        "list": Permission.ADMIN,
        "create": Permission.ADMIN,
        "admin_count": Permission.ADMIN,
        "validate_password": None,
        "reset_password": Permission.ADMIN,
        "retrieve": Permission.ADMIN,
        "update": Permission.ADMIN,
        "destroy": Permission.ADMIN,
        "change_password": Permission.ADMIN,
        "confirm": Permission.ADMIN,
    }

    @cached_property
    def user(self) -> User:
        return access_account(self.caller, path_id(self.kwargs["user_id"], "Person"), is_service=False)

    def get_current_document(self) -> AccountDocument:
        return self.user.document()

    @extend_schema(operation_id="getUsers", responses=PeopleList)
    def list(self, request: ApiRequest) -> Response:
        """List all users and the available root roles."""
        people = read_accounts(self.caller, is_service=False)
        roles = RoleRecord(Role.objects.root(), many=True).data
        users = [make_account_record(user) | {"inviteLink": ""} for user in people]
        return Response({"users": users, "rootRoles": roles})

    @extend_schema(operation_id="createUser", request=PersonBody, responses={201: CreatedPersonRecord})
    def create(self, request: ApiRequest) -> Response:
        """Create a user. Without a password, the response contains a one-time link, unless password login is off.

        It is also sent by email, if the server sends email and the user has an address.
        """
        data = self.validated(PersonBody)
        new = NewAccount(
            username=data.get("username") or data.get("email") or "",
            name=data.get("name") or "",
            email=data.get("email"),
            root_role=data.get("rootRole"),
            password=data.get("password"),
        )
        user = actions.create_account(new, caller=self.caller)
        record = make_account_record(user) | {"emailSent": False}
        if new.password is None and settings.PASSWORD_LOGIN:
            link = create_first_link(user)
            record["inviteLink"] = make_absolute_url(request._request, link)
            if data.get("sendEmail", True):
                record["emailSent"] = send_invitation(user, link, by=self.caller.name)
        return Response(record, status=201)

    @extend_schema(operation_id="getAdminCount", responses=AdminCount)
    @action(detail=False, url_path="admin-count")
    def admin_count(self, request: ApiRequest) -> Response:
        """Count the active accounts that hold the Admin role, directly or through a group."""
        people = list(find_admins_who_log_in().distinct())
        with_password = sum(person.has_usable_password() for person in people)
        service = User.objects.service_accounts().active().filter(root_role=BuiltIn.ADMIN)
        return Response(
            {
                "password": with_password,
                "noPassword": len(people) - with_password,
                "service": service.count(),
            }
        )

    @extend_schema(operation_id="validateUserPassword", request=PasswordBody, responses={200: None})
    @action(methods=["post"], detail=False, url_path="validate-password")
    def validate_password(self, request: ApiRequest) -> Response:
        """Check a password against the rules. Reports all problems at once."""
        password = self.validated(PasswordBody)["password"]
        check_problems(list_password_problems(password, User()))
        return Response()

    @extend_schema(operation_id="resetUserPassword", request=ResetPasswordBody, responses=ResetPasswordRecord)
    @action(methods=["post"], detail=False, url_path="reset-password")
    def reset_password(self, request: ApiRequest) -> Response:
        """Reset a user's password and get a one-time link for choosing a new one.

        The link is shown once and works for 24 hours. The user's sessions, personal tokens and older links end.
        """
        user = find_person(self.caller, self.validated(ResetPasswordBody)["id"])
        link = reset_password(user.pk, caller=self.caller)
        return Response({"resetPasswordUrl": make_absolute_url(request._request, link)})

    @extend_schema(operation_id="getUser", responses=PersonRecord)
    def retrieve(self, request: ApiRequest, user_id: str) -> Response:
        """Get a user."""
        custodies = CustodyRecord(list_custodies(self.user), many=True).data
        return Response(make_account_record(self.user) | {"unconfirmed": custodies})

    @extend_schema(operation_id="updateUser", request=PersonUpdateBody, responses=AccountRecord)
    def update(self, request: ApiRequest, user_id: str) -> Response:
        """Update a user. Omitted properties keep their values. The last admin cannot lose the Admin role."""
        changes = self.validated(PersonUpdateBody)
        user = actions.update_account(
            path_id(user_id, "Person"), changes, is_service=False, expected=self.expected, caller=self.caller
        )
        return Response(make_account_record(user))

    @extend_schema(operation_id="deleteUser", responses={200: None})
    def destroy(self, request: ApiRequest, user_id: str) -> Response:
        """Delete a user with their tokens, roles and memberships."""
        actions.delete_account(
            path_id(user_id, "Person"), is_service=False, expected=self.expected, caller=self.caller
        )
        return Response()

    @extend_schema(operation_id="changeUserPassword", request=PasswordBody, responses={200: None})
    @action(methods=["post"], detail=True, url_path="change-password")
    def change_password(self, request: ApiRequest, user_id: str) -> Response:
        """Set a user's password. This ends all of their sessions."""
        change_password(self.user, self.validated(PasswordBody)["password"], caller=self.caller)
        return Response()

    @extend_schema(operation_id="confirmUser", request=None, responses=AccountRecord)
    @action(methods=["post"], detail=True)
    def confirm(self, request: ApiRequest, user_id: str) -> Response:
        """Confirm that an account belongs to another person than its creator.

        From then on it counts as a second person: it may approve its creator's change requests. Admins may confirm
        accounts that they have not created themselves, and not their own.
        """
        return Response(make_account_record(confirm_account(path_id(user_id, "Person"), caller=self.caller)))


class InactivePersonRecord(NamedAccount):
    seenAt = serializers.DateTimeField(allow_null=True, help_text="The last login.")
    createdAt = serializers.DateTimeField()
    patSeenAt = serializers.DateTimeField(allow_null=True, help_text="The last use of a personal token.")


class InactivePeople(serializers.Serializer):
    version = serializers.IntegerField()
    inactiveUsers = InactivePersonRecord(many=True)


class IdsBody(Body):
    ids = ListOf(child=serializers.IntegerField(min_value=1, max_value=2**63 - 1))


class InactivePeopleViewSet(ViewSet):
    tags = ("People",)
    permissions = {"list": Permission.ADMIN, "delete_listed": Permission.ADMIN}

    @extend_schema(operation_id="getInactiveUsers", responses=InactivePeople)
    def list(self, request: ApiRequest) -> Response:
        """List the users who have neither logged in nor used a personal token for 180 days."""
        records = [
            {
                "id": user.pk,
                "name": user.name,
                "username": user.username,
                "email": user.email,
                "seenAt": iso(user.seen_at),
                "createdAt": iso(user.created_at),
                "patSeenAt": iso(user.token_seen_at),  # type: ignore[attr-defined]
            }
            for user in read_inactive_people(self.caller)
        ]
        return Response({"version": 1, "inactiveUsers": records})

    @extend_schema(operation_id="deleteInactiveUsers", request=IdsBody, responses={200: None})
    @action(methods=["post"], detail=False, url_path="delete")
    def delete_listed(self, request: ApiRequest) -> Response:
        """Delete these inactive users, all or none."""
        delete_inactive_people(self.validated(IdsBody)["ids"], caller=self.caller)
        return Response()


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
        roles = RoleRecord(Role.objects.root(), many=True).data
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
        return Response({"pats": PersonalToken(tokens, many=True).data})

    @extend_schema(
        operation_id="createServiceAccountToken",
        request=PersonalTokenBody,
        responses={201: PersonalToken},
    )
    def create(self, request: ApiRequest, account_id: str) -> Response:
        """Create a token that acts as the service account. Only this response contains its secret."""
        data = self.validated(PersonalTokenBody)
        token, secret = create_personal_token(self.account, **data, caller=self.caller)
        return Response({**PersonalToken(token).data, "secret": secret}, status=201)

    @extend_schema(operation_id="deleteServiceAccountToken", responses={200: None})
    def destroy(self, request: ApiRequest, account_id: str, token_id: str) -> Response:
        """Revoke a token of a service account, effective immediately."""
        delete_personal_token(self.account, path_id(token_id, "Token"), caller=self.caller)
        return Response()


def _make_record(user: User) -> dict[str, Any]:
    return make_service_account_record(user, read_personal_tokens(user))
