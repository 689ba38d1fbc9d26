"""Serializers of accounts, personal tokens and root roles, compatible with the reference server."""

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, Texts, Time
from flagadmin.core.http.responses import iso
from groups.models import ApiToken, Custody, User


@extend_schema_field(
    {"oneOf": [{"type": "integer"}, {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH}]}
)
class RootRoleField(serializers.Field):
    """A root role's id or name, or null for none."""

    def to_internal_value(self, data: Any) -> int | str:
        if isinstance(data, bool) or not isinstance(data, int | str) or data == "":
            raise serializers.ValidationError("Give a root role's id or its name.")
        if isinstance(data, str) and len(data) > MAX_NAME_LENGTH:
            raise serializers.ValidationError(f"Must have at most {MAX_NAME_LENGTH} characters.")
        return int(data) if isinstance(data, str) and data.isascii() and data.isdigit() else data

    def to_representation(self, value: Any) -> Any:
        return value


class PersonBody(Body):
    username = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)
    email = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)
    name = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)
    password = serializers.CharField(
        max_length=1000, required=False, allow_null=True, trim_whitespace=False, write_only=True
    )
    rootRole = RootRoleField(required=False, allow_null=True, help_text="Id or name; null for none.")
    sendEmail = serializers.BooleanField(
        required=False,
        help_text="Whether the link is sent by email, if the server sends email. Default true.",
    )


class ServiceAccountUpdateBody(Body):
    name = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)
    rootRole = RootRoleField(
        source="root_role", required=False, allow_null=True, help_text="Id or name; null for none."
    )
    isActive = serializers.BooleanField(
        source="is_active", required=False, help_text="false: no login, and its tokens do not work."
    )


class PersonUpdateBody(ServiceAccountUpdateBody):
    email = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)


class ServiceAccountBody(Body):
    username = serializers.CharField(max_length=255)
    name = serializers.CharField(max_length=255, required=False, allow_blank=True, allow_null=True)
    rootRole = RootRoleField(required=False, allow_null=True, help_text="Id or name; null for none.")


class AccountName(serializers.Serializer):
    """An account in a list to choose from."""

    id = serializers.IntegerField()
    name = serializers.CharField(
        source="display_name", help_text="The name, or the user name if there is none."
    )


class PasswordBody(Body):
    password = serializers.CharField(max_length=1000, trim_whitespace=False)


class ResetPasswordBody(Body):
    id = serializers.CharField(max_length=255, help_text="Email address, user name or id.")


class ResetPasswordRecord(serializers.Serializer):
    resetPasswordUrl = serializers.CharField(help_text="Works once, within a day.")


class RoleRecord(serializers.Serializer):
    id = serializers.IntegerField()
    type = serializers.CharField(help_text="root or project (built in), root-custom or custom.")
    name = serializers.CharField()
    description = serializers.CharField()
    project = serializers.CharField(
        default=None,
        allow_null=True,
        help_text="Where the role is held, in lists of one's own roles. Otherwise null.",
    )


class NamedAccount(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField(allow_null=True)


class AccountRecord(NamedAccount):
    """A person or a service account."""

    isAPI = serializers.BooleanField(help_text="Always false: tokens without a user are not accounts.")
    accountType = serializers.CharField(help_text="User or Service Account.")
    rootRole = serializers.IntegerField(allow_null=True)
    isActive = serializers.BooleanField()
    seenAt = serializers.DateTimeField(allow_null=True)
    createdAt = serializers.DateTimeField()
    imageUrl = serializers.CharField(help_text="Always empty: nothing is fetched from a picture service.")
    loginAttempts = serializers.IntegerField(help_text="Always 0: attempts are counted by address too.")
    scimId = serializers.CharField(allow_null=True, help_text="Always null.")
    seatType = serializers.CharField(allow_null=True, help_text="Always null.")
    companyRole = serializers.CharField(allow_null=True, help_text="Always null.")
    productUpdatesEmailConsent = serializers.BooleanField(allow_null=True, help_text="Always null.")


class CustodyRecord(serializers.Serializer):
    by = serializers.CharField(source="keeper.username", help_text="User name.")
    how = serializers.ChoiceField(Custody.How.values)
    since = Time()
    until = Time(allow_null=True)


class PersonRecord(AccountRecord):
    unconfirmed = CustodyRecord(
        many=True,
        help_text="Who made the account or set how it logs in, for as long as it is no second person beside them.",
    )


class PersonalTokenBody(Body):
    description = serializers.CharField(source="name", max_length=255, help_text="Its name in lists.")
    expiresAt = serializers.DateTimeField(
        source="expires_at", required=False, allow_null=True, help_text="null for never."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"expires_at": None} | attrs


class PersonalToken(serializers.Serializer):
    """A personal token. Only the response to its creation contains its `secret`."""

    id = serializers.IntegerField()
    description = serializers.CharField(source="name")
    expiresAt = Time(source="expires_at", allow_null=True)
    userId = serializers.IntegerField(source="user_id")
    createdAt = Time(source="created_at")
    seenAt = Time(source="seen_at", allow_null=True)
    secret = serializers.CharField(required=False)


class PersonalTokenList(serializers.Serializer):
    pats = PersonalToken(many=True)


class ServiceAccountRecord(AccountRecord):
    tokens = PersonalToken(many=True, help_text="Its tokens, without their secrets.")


class CandidateUser(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField(required=False)
    username = serializers.CharField()
    email = serializers.CharField(required=False)
    accountType = serializers.CharField(help_text="User or Service Account.")


class CandidateGroup(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()


class NamedGroup(CandidateGroup):
    rootRole = serializers.IntegerField(allow_null=True)
    mappingsSSO = Texts()
    scimId = serializers.CharField(allow_null=True)
    createdAt = serializers.DateTimeField()
    createdBy = serializers.CharField()


class Candidates(serializers.Serializer):
    """Accounts and groups that can be given a role in a project."""

    users = CandidateUser(many=True)
    groups = CandidateGroup(many=True)


class AdminCount(serializers.Serializer):
    """The number of administrators."""

    password = serializers.IntegerField(help_text="Users who log in with a password.")
    noPassword = serializers.IntegerField(help_text="Users who log in by link only.")
    service = serializers.IntegerField(help_text="Service accounts.")


class CreatedPersonRecord(AccountRecord):
    inviteLink = serializers.CharField(
        required=False,
        help_text="Works once, within a day: how a user created without a password logs in. "
        "Absent if password login is off.",
    )
    emailSent = serializers.BooleanField()


class ListedPersonRecord(AccountRecord):
    inviteLink = serializers.CharField(help_text="Always empty: a link is shown once, when it is created.")


class PeopleList(serializers.Serializer):
    users = ListedPersonRecord(many=True)
    rootRoles = RoleRecord(many=True)


class ServiceAccountList(serializers.Serializer):
    serviceAccounts = ServiceAccountRecord(many=True)
    rootRoles = RoleRecord(many=True)


def make_account_record(user: User) -> dict[str, Any]:
    return {
        "id": user.pk,
        "isAPI": False,
        "accountType": "Service Account" if user.is_service else "User",
        "username": user.username,
        "name": user.name,
        "email": user.email,
        "rootRole": user.root_role_id,
        "isActive": user.is_active,
        "seenAt": iso(user.seen_at),
        "createdAt": iso(user.created_at),
        "imageUrl": "",
        "loginAttempts": 0,
        "scimId": None,
        "seatType": None,
        "companyRole": None,
        "productUpdatesEmailConsent": None,
    }


def make_candidate_record(user: User) -> dict[str, Any]:
    """The user as a candidate for a role. Empty properties are omitted."""
    document = {
        "id": user.pk,
        "name": user.name,
        "username": user.username,
        "email": user.email,
        "accountType": "Service Account" if user.is_service else "User",
    }
    return {key: value for key, value in document.items() if value}


def make_service_account_record(user: User, tokens: Iterable[ApiToken]) -> dict[str, Any]:
    return make_account_record(user) | {"tokens": PersonalToken(tokens, many=True).data}
