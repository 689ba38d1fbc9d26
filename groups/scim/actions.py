"""Creates, changes, deactivates and deletes accounts and groups for an identity provider."""

from collections.abc import Callable
from dataclasses import dataclass

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import UserExists
from groups.access import Caller
from groups.groups.actions import (
    GroupChanges,
    NewGroup,
    access_group_for_update,
    change_members,
    create_group,
    delete_group,
    update_group,
)
from groups.models import ApiToken, Group, User
from groups.people.actions import AccountChanges, NewAccount, create_account, delete_account, update_account
from groups.people.personal_tokens import delete_personal_tokens
from groups.scim.errors import as_taken
from groups.scim.member_changes import MemberChanges


def make_caller() -> Caller:
    """The identity provider, as the audit log names it. Its token is no API token: it reaches nothing but SCIM."""
    return Caller(token=ApiToken(kind=ApiToken.Kind.ADMIN, name="SCIM"))


@transactional
def create_user(values: AccountChanges, *, caller: Caller) -> User:
    """Raises NoAccess, ValidationError, Taken."""
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
        raise as_taken(error) from error


@transactional
def change_user(user_id: int, read_changes: Callable[[User], AccountChanges], *, caller: Caller) -> User:
    """Changes a user. A deactivated user loses sessions and personal tokens at once, for good.

    ``read_changes`` gets the user as stored, once nobody else can change it.

    Raises NoAccess, NotFound, ValidationError, Taken, InvalidOperation (the last admin).
    """
    try:
        user = update_account(user_id, read_changes, is_service=False, caller=caller)
    except UserExists as error:
        raise as_taken(error) from error
    if not user.is_active:
        delete_personal_tokens(user, caller=caller)
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
    """A group that a provider changes is its own from then on.

    ``read_values`` gets the group as stored, once nobody else can change it.

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
