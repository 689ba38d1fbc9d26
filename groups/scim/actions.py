"""Creates, changes, deactivates and deletes accounts and groups for an identity provider.

Reads the settings of SCIM.

Errors in SCIM's format (RFC 7644, section 3.12).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError, NameExists, UserExists, ValidationError
from groups.access import Caller, Permission
from groups.groups.actions import (
    GroupChanges,
    NewGroup,
    access_group_for_update,
    change_members,
    create_group,
    delete_group,
    update_group,
)
from groups.models import ApiToken, Group, ScimSettings, User
from groups.models.people import ROW
from groups.people.actions import AccountChanges, NewAccount, create_account, delete_account, update_account
from groups.people.personal_tokens import delete_personal_tokens, end_custody
from groups.tokens import hash_secret


@dataclass(slots=True)
class MemberChanges:
    """``only``: the members before the changes; None for the present ones."""

    only: set[int] | None = None
    added: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.only is not None or self.added or self.removed)

    def add(self, ids: set[int]) -> None:
        self.added |= ids
        self.removed -= ids

    def remove(self, ids: set[int]) -> None:
        self.removed |= ids
        self.added -= ids

    def replace(self, ids: set[int]) -> None:
        self.only, self.added, self.removed = ids, set(), set()

    def final(self) -> set[int]:
        """Returns all members, if the changes do not start from the present ones."""
        return ((self.only or set()) | self.added) - self.removed


HOW = "An admin can let the provider find accounts by their email address: Access, Provisioning."


def make_caller() -> Caller:
    """The identity provider, as named in the audit log. Its token is not an API token: it only gives access to SCIM."""
    return Caller(token=ApiToken(kind=ApiToken.Kind.ADMIN, name="SCIM"))


def create_user(values: AccountChanges, *, caller: Caller) -> User:
    """Creates an account or, if the settings allow it, takes over the one with this email address.

    Raises NoAccess, ValidationError, Taken.
    """
    if found := _find_by_email(values):
        return change_user(found.pk, lambda _: values, caller=caller)
    return _create_user(values, caller=caller)


def _find_by_email(values: AccountChanges) -> User | None:
    """The account to take over: same email address, other user name, and no other identity of the provider."""
    people = User.objects.people()
    if not load_settings().finds_by_email or people.filter(username__iexact=values["username"]).exists():
        return None
    addresses = [address for address in (values["username"], values["email"]) if address]
    is_it = reduce(or_, (Q(email__iexact=address) for address in addresses))
    found = list(people.filter(is_it, external_id=None)[:2])
    return found[0] if len(found) == 1 else None


@transactional
def _create_user(values: AccountChanges, *, caller: Caller) -> User:
    new = NewAccount(
        username=values["username"],
        name=values["name"] or "",
        email=values["email"],
        is_active=values.get("is_active", True),
        external_id=values["external_id"],
        scim_name=values["scim_name"],
    )
    try:
        return create_account(new, caller=caller)
    except UserExists as error:
        raise Taken(f"{error.message} {_describe_taken(values)}".rstrip()) from error


def _describe_taken(values: AccountChanges) -> str:
    """Names the account with the user name or email address, and how the provider can take it over."""
    for name in filter(None, (values["username"], values["email"])):
        if account := User.objects.known_as(name).first():
            break
    else:
        return ""
    if account.is_service:
        return f"It is the service account {account.username} (id {account.pk}), which no provider manages."
    if account.username.lower() == values["username"].lower():
        return f"Its id is {account.pk}: find it by its userName."
    if account.external_id is not None:
        return f"It is the account {account.username} (id {account.pk}), which has externalId {account.external_id}."
    return f"It is the account {account.username} (id {account.pk}). {HOW}"


@transactional
def change_user(user_id: int, read_changes: Callable[[User], AccountChanges], *, caller: Caller) -> User:
    """Changes a user. A deactivated user permanently loses sessions and personal tokens at once.

    ``read_changes`` gets the stored user, after locking it.

    Raises NoAccess, NotFound, ValidationError, Taken, InvalidOperation (the last admin).
    """
    try:
        user = update_account(user_id, read_changes, is_service=False, caller=caller)
    except UserExists as error:
        raise Taken(error.message) from error
    if not user.is_active:
        delete_personal_tokens(user, caller=caller)
    end_custody(user, caller.name)
    return user


@transactional
def delete_user(user_id: int, *, caller: Caller) -> None:
    """Raises NoAccess, NotFound, InvalidOperation."""
    delete_account(user_id, is_service=False, caller=caller)


@dataclass(frozen=True, slots=True)
class GroupValues:
    name: str
    external_id: str | None


@transactional
def create_provided_group(values: GroupValues, members: set[int], *, caller: Caller) -> Group:
    """Raises NoAccess, ValidationError, NameExists."""
    group = create_group(NewGroup(name=values.name, users=tuple(sorted(members))), caller=caller)
    return _keep(group.pk, lambda _: values, caller)


@transactional
def change_provided_group(
    group_id: int, read_values: Callable[[Group], GroupValues], members: MemberChanges, *, caller: Caller
) -> Group:
    """Changes a group, which belongs to the provider from then on.

    ``read_values`` gets the stored group, after locking it.

    Raises NoAccess, NotFound, ValidationError, NameExists.
    """
    group = _keep(group_id, read_values, caller)
    if members.only is not None:
        present = group.member_ids()
        added, removed = members.final() - present, present - members.final()
    else:
        added, removed = members.added, members.removed
    if added or removed:
        group = change_members(group_id, add=added, remove=removed, by_provider=True, caller=caller)
    return group


@transactional
def delete_provided_group(group_id: int, *, caller: Caller) -> None:
    """Raises NoAccess, NotFound, InvalidOperation."""
    delete_group(group_id, caller=caller)


def _keep(group_id: int, read_values: Callable[[Group], GroupValues], caller: Caller) -> Group:
    group = access_group_for_update(caller, group_id)
    values = read_values(group)
    changes = GroupChanges(name=values.name, external_id=values.external_id, scim_id=str(group_id))
    if all(getattr(group, column) == value for column, value in changes.items()):
        return group
    return update_group(group_id, changes, by_provider=True, caller=caller)


SUBJECT = "SCIM"
START = "scim:"


@transactional
def set_enabled(is_enabled: bool, *, finds_by_email: bool | None = None, caller: Caller) -> ScimSettings:
    """Switches SCIM, and with a value also the search by email address. Raises NoAccess."""
    scim = _lock(caller)
    before = scim.document()
    scim.is_enabled = is_enabled
    scim.finds_by_email = scim.finds_by_email if finds_by_email is None else finds_by_email
    if (after := scim.document()) != before:
        _record(caller, before, after)
        scim.save(update_fields=["is_enabled", "finds_by_email"])
    return scim


@transactional
def set_finds_by_email(finds_by_email: bool, *, caller: Caller) -> ScimSettings:
    """Raises NoAccess."""
    return set_enabled(_lock(caller).is_enabled, finds_by_email=finds_by_email, caller=caller)


@transactional
def make_token(*, caller: Caller) -> str:
    """Replaces the token, which stops working, by a new one that is not stored. Raises NoAccess."""
    scim = _lock(caller)
    secret = START + secrets.token_urlsafe(32)
    _record(caller, {"hasToken": scim.has_token}, {"hasToken": True, "new": True})
    scim.token_hash, scim.token_created_at, scim.seen_at = hash_secret(secret), timezone.now(), None
    scim.save()
    return secret


def _lock(caller: Caller) -> ScimSettings:
    caller.check(Permission.ADMIN)
    ScimSettings.objects.bulk_create([ScimSettings(pk=ROW)], ignore_conflicts=True)
    return ScimSettings.objects.select_for_update().get(pk=ROW)


def _record(caller: Caller, before: dict[str, bool], after: dict[str, bool]) -> None:
    record(Event(type=EventType.SETTING_UPDATED, subject=SUBJECT, before=before, after=after), actor=caller)


def load_settings() -> ScimSettings:
    """The stored settings, or the defaults of an installation that has never used SCIM."""
    return ScimSettings.objects.filter(pk=ROW).first() or ScimSettings()


def read_settings(caller: Caller) -> ScimSettings:
    """Raises NoAccess."""
    caller.check(Permission.ADMIN)
    return load_settings()


PREFIX = "/scim/"
SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


class ScimRefused(ValidationError):
    """400, with SCIM's name for the reason (``scimType``)."""

    def __init__(self, message: str, scim_type: str) -> None:
        super().__init__(message)
        self.kind = scim_type


class Taken(NameExists):
    """409: another account or group has the name."""


def make_error_body(path: str, error: AppError, error_id: str) -> dict[str, Any]:
    """``error_id`` identifies it in the server's log."""
    kind = getattr(error, "kind", "uniqueness" if isinstance(error, NameExists) else "invalidValue")
    detail = error.message if error.status < 500 else f"{error.message} (id {error_id})"
    known = {"scimType": kind} if error.status in (400, 409) else {}
    return {"schemas": [SCHEMA], "status": str(error.status), **known, "detail": detail}
