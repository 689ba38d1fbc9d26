"""Actions on people and service accounts: create, update, disable, delete. They require the Admin role.

At least one admin remains, and admins cannot remove their own Admin role by mistake.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypedDict

from django.core.exceptions import ValidationError as Refused
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import length_problems
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    AppError,
    InvalidOperation,
    NameExists,
    Problem,
    UserExists,
    check_problems,
    collect_errors,
)
from groups.access import Caller
from groups.login.links import end_links
from groups.login.rules import check_passwords_on, list_password_problems
from groups.models import Custody, Group, Role, User
from groups.people.personal_tokens import hand_on, note_custody
from groups.people.queries import find_account
from groups.permissions import BuiltIn, Permission
from groups.roles.actions import find_root_role_id
from groups.sessions.store import delete_sessions

_EVENTS = {
    False: (EventType.USER_CREATED, EventType.USER_UPDATED, EventType.USER_DELETED),
    True: (
        EventType.SERVICE_ACCOUNT_CREATED,
        EventType.SERVICE_ACCOUNT_UPDATED,
        EventType.SERVICE_ACCOUNT_DELETED,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount:
    """The values of a new account. `root_role`: id or name, or None.

    Without a password, a user first logs in with a one-time link. Only SCIM sets the values after the password.
    """

    username: str
    is_service: bool = False
    name: str = ""
    email: str | None = None
    root_role: int | str | None = None
    password: str | None = None
    is_active: bool = True
    external_id: str | None = None
    scim_name: dict[str, str] | None = None


class AccountChanges(TypedDict, total=False):
    """New values of an account. ``root_role``: id or name, or None. Only SCIM sets the user name and the values after
    ``is_active``.
    """

    username: str
    name: str | None
    email: str | None
    root_role: int | str | None
    is_active: bool
    external_id: str | None
    scim_name: dict[str, str] | None


@transactional
def create_account(new: NewAccount, *, caller: Caller) -> User:
    """Creates an account.

    Raises NoAccess, ValidationError, NameExists (a service account), InvalidOperation (passwords are off).
    """
    caller.check(Permission.ADMIN)
    user = _create(new, caller=caller)
    note_custody(user, Custody.How.CREATED, caller=caller)
    return user


@transactional
def invite_person(email: str, *, name: str, project: str, caller: Caller) -> User:
    """Creates an account without a root role, for a person who is about to get a role in the project.

    Checks no permission: callers who may grant roles in the project may invite. Raises ValidationError.
    """
    user = _create(NewAccount(username=email, email=email, name=name), project=project, caller=caller)
    note_custody(user, Custody.How.INVITED, caller=caller)
    return user


def _create(new: NewAccount, *, project: str | None = None, caller: Caller) -> User:
    user = User(
        username=new.username.strip(),
        name=new.name,
        email=(new.email or "").strip() or None,
        is_service=new.is_service,
        is_active=new.is_active,
        external_id=new.external_id,
        scim_name=new.scim_name,
    )
    problems = [*_problems_of_names(user)]
    if new.password is not None:
        check_passwords_on()
        problems += list_password_problems(new.password, user)
    user.root_role_id = find_root_role_id(new.root_role, problems)
    check_problems(problems)
    _check_free(user)
    if new.password is None:
        user.set_unusable_password()
    else:
        user.set_password(new.password)
    user.save()
    created, _, _ = _EVENTS[user.is_service]
    event = Event(type=created, project=project, subject=user.username, after=user.document())
    record(event, actor=caller)
    return user


@transactional
def update_account(
    user_id: int,
    changes: AccountChanges | Callable[[User], AccountChanges],
    *,
    is_service: bool,
    expected: Expected = None,
    caller: Caller,
) -> User:
    """Updates an account. ``changes`` may be a function of the locked account.

    Raises NoAccess, NotFound, EditConflict, ValidationError, InvalidOperation (the last admin, or the caller's
    own Admin role).
    """
    caller.check(Permission.ADMIN)
    with keeping_admins(caller):
        user = access_account_for_update(user_id, is_service)
        before, email = user.document(), user.email
        check_expected(expected, before)
        _apply_changes(user, changes(user) if callable(changes) else changes)
        user.save()
        if not user.is_active:
            delete_sessions(user)
        if not user.is_active or user.email != email:
            end_links(user)  # they may have gone to a mailbox that is no longer theirs
        if user.email and user.email != email:
            note_custody(user, Custody.How.EMAIL, caller=caller)
    _, updated, _ = _EVENTS[is_service]
    event = Event(type=updated, subject=user.username, before=before, after=user.document())
    record_change(event, actor=caller)
    return user


@transactional
def delete_account(user_id: int, *, is_service: bool, expected: Expected = None, caller: Caller) -> None:
    """Deletes an account with its tokens, grants and memberships.

    Raises NoAccess, NotFound, EditConflict, InvalidOperation.
    """
    caller.check(Permission.ADMIN)
    with keeping_admins(caller):
        user = access_account_for_update(user_id, is_service)
        current = user.document()
        check_expected(expected, current)
        before = {
            **current,
            "tokens": [token.name for token in user.tokens.all()],
            "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
            "grants": list(user.grants.order_by("project_id").values("project_id", "role_id")),
            "ownedFlags": list(user.owned_flags.order_by("name").values_list("name", flat=True)),
        }
        delete_sessions(user)
        hand_on(user)
        user.delete()
    _, _, deleted = _EVENTS[is_service]
    record(Event(type=deleted, subject=user.username, before=before), actor=caller)


def find_account_blockers(user: User, caller: Caller) -> list[AppError]:
    """The reasons why the account cannot be deleted. Does not write."""
    return collect_errors(partial(check_admins_without_account, user, caller))


def access_account_for_update(user_id: int, is_service: bool) -> User:
    """The account, locked. Raises NotFound."""
    return find_account(User.objects.select_for_update(), user_id, is_service=is_service)


def _apply_changes(user: User, changes: AccountChanges) -> None:
    problems: list[Problem] = []
    if "name" in changes:
        user.name = changes["name"] or ""
    for column in ("username", "is_active", "external_id", "scim_name"):
        if column in changes:
            setattr(user, column, changes[column])
    if "email" in changes:
        user.email = (changes["email"] or "").strip() or None
    if "root_role" in changes:
        user.root_role_id = find_root_role_id(changes["root_role"], problems)
    problems += _problems_of_names(user)
    check_problems(problems)
    _check_free(user)


def _problems_of_names(user: User) -> Iterator[Problem]:
    if not user.username:
        yield Problem("username", "Enter a user name or an email address.")
    elif not user.username.isprintable() or len(user.username) > 255:
        yield Problem("username", "At most 255 letters, digits, spaces and symbols.")
    if user.email:
        try:
            validate_email(user.email)
        except Refused:
            yield Problem("email", f"{user.email} is not an email address.")
    yield from length_problems(user, name="name", email="email", external_id="externalId")


def _check_free(user: User) -> None:
    """Raises UserExists, or NameExists for a service account, if another account has the user name or email address.

    Both names share one namespace.
    """
    for path, name in (("username", user.username), ("email", user.email)):
        if not name or not User.objects.known_as(name).exclude(pk=user.pk).exists():
            continue
        if user.is_service:
            raise NameExists(f"An account named {name} already exists.")
        raise UserExists.at(path, f"User already exists: an account named {name}.")


INACTIVE_AFTER = timedelta(days=180)


def read_inactive_people(caller: Caller) -> QuerySet[User]:
    """The users created more than 180 days ago who have since neither logged in nor used a personal token.

    Each has ``token_seen_at``. Raises NoAccess.
    """
    caller.check(Permission.ADMIN)
    limit = timezone.now() - INACTIVE_AFTER
    users = User.objects.people().filter(created_at__lt=limit).annotate(token_seen_at=Max("tokens__seen_at"))
    has_been_away = Q(seen_at=None) | Q(seen_at__lt=limit)
    has_idle_tokens = Q(token_seen_at=None) | Q(token_seen_at__lt=limit)
    return users.filter(has_been_away, has_idle_tokens).order_by("id")


@transactional
def delete_inactive_people(user_ids: Iterable[int], *, caller: Caller) -> None:
    """Deletes these users, all or none.

    Raises NoAccess, ValidationError (a user is not inactive), InvalidOperation (no admin would remain).
    """
    inactive_ids = set(read_inactive_people(caller).values_list("id", flat=True))
    listed_ids = list(dict.fromkeys(user_ids))
    check_problems(
        Problem(f"ids[{index}]", f"No inactive user has the id {user_id}.")
        for index, user_id in enumerate(listed_ids)
        if user_id not in inactive_ids
    )
    for user_id in listed_ids:
        delete_account(user_id, is_service=False, caller=caller)


def find_admins_who_log_in() -> QuerySet[User]:
    return User.objects.people().active().admins()


def lock_admins() -> None:
    """Locks the set of admins. Call this before locking a user or a group."""
    list(Role.objects.select_for_update(no_key=True).filter(id=BuiltIn.ADMIN))


@contextmanager
def keeping_admins(caller: Caller) -> Iterator[None]:
    """Wraps a change that could take the Admin role from a user. Raises InvalidOperation at its end.

    A lock serializes such changes: if two admins remove each other at once, only one of them succeeds.
    """
    lock_admins()
    before = _read_ids(find_admins_who_log_in())
    with transaction.atomic():
        yield
        _check_admins(before, _read_ids(find_admins_who_log_in()), caller)


def check_admins_without_account(user: User, caller: Caller) -> None:
    """Raises InvalidOperation if the account is the caller's or the last one with the Admin role."""
    before = _read_ids(find_admins_who_log_in())
    _check_admins(before, before - {user.pk}, caller)


def check_admins_without_group(group: Group, caller: Caller) -> None:
    """Raises InvalidOperation if the caller or all users would lose the Admin role without the group."""
    other_groups = Group.objects.filter(root_role=BuiltIn.ADMIN).exclude(pk=group.pk)
    remaining = find_admins_who_log_in().filter(Q(root_role=BuiltIn.ADMIN) | Q(groups__in=other_groups))
    _check_admins(_read_ids(find_admins_who_log_in()), _read_ids(remaining), caller)


def _read_ids(users: QuerySet[User]) -> set[int]:
    return set(users.values_list("id", flat=True))


def _check_admins(before: set[int], after: set[int], caller: Caller) -> None:
    if before and not after:
        raise InvalidOperation(
            "Nobody with the Admin role could log in any more. Grant the role to another user first."
        )
    if caller.id in before - after:
        raise InvalidOperation("You would lose the Admin role. Ask another admin to do this.")
