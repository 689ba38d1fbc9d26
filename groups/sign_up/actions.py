"""Creates, changes and revokes invite links, and signs people up with them."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Problem, check_problems
from groups.access import Caller
from groups.login.rules import check_passwords_on
from groups.models import Custody, InviteLink, Role, User
from groups.people.actions import NewAccount, create_account
from groups.people.custody import find_maker, note_custody
from groups.permissions import BuiltIn, Permission
from groups.roles.rules import find_root_role_id
from groups.sign_up.queries import find_invite_link, open_invite_link
from groups.sign_up.rules import may_be_given, problems_of_expiry
from groups.tokens import hash_secret

KEY_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInviteLink:
    """``root_role``: id or name; Viewer if None."""

    name: str
    expires_at: datetime
    root_role: int | str | None = None


class InviteLinkChanges(TypedDict, total=False):
    is_enabled: bool
    expires_at: datetime


@transactional
def create_invite_link(new: NewInviteLink, *, caller: Caller) -> tuple[InviteLink, str]:
    """Creates a link. Returns it with its token, which is not stored.

    Raises NoAccess, InvalidOperation (passwords are off), ValidationError.
    """
    caller.check(Permission.ADMIN)
    check_passwords_on()
    problems = [*problems_of_expiry(new.expires_at, now=timezone.now())]
    role_id = find_root_role_id(BuiltIn.VIEWER.value if new.root_role is None else new.root_role, problems)
    role = None if role_id is None else Role.objects.filter(pk=role_id).first()
    if role is not None and not may_be_given(role):
        problems.append(
            Problem("rootRole", f"An invite link cannot give the role {role}: it can do everything.")
        )
    check_problems(problems)
    assert role is not None  # an unknown role is a problem
    token = secrets.token_urlsafe(32)
    link = InviteLink.objects.create(
        name=new.name,
        key=token[:KEY_LENGTH],
        token_hash=hash_secret(token),
        role=role,
        expires_at=new.expires_at,
        created_by=caller.name,
    )
    record(
        Event(type=EventType.PUBLIC_SIGNUP_TOKEN_CREATED, subject=link.name, after=link.document()),
        actor=caller,
    )
    return link, token


@transactional
def update_invite_link(key: str, changes: InviteLinkChanges, *, caller: Caller) -> InviteLink:
    """Changes, revokes or renews a link. Raises NoAccess, NotFound, ValidationError."""
    caller.check(Permission.ADMIN)
    if "expires_at" in changes:
        check_problems(problems_of_expiry(changes["expires_at"], now=timezone.now()))
    link = find_invite_link(
        InviteLink.objects.select_for_update(no_key=True, of=("self",)).select_related("role"), key
    )
    before = link.document()
    for name, value in changes.items():
        setattr(link, name, value)
    link.save(update_fields=list(changes))
    kind, after = EventType.PUBLIC_SIGNUP_TOKEN_UPDATED, link.document()
    record_change(Event(type=kind, subject=link.name, before=before, after=after), actor=caller)
    return link


@transactional
def sign_up(token: str, *, username: str, email: str, name: str, password: str) -> User:
    """Creates an account with the link's role.

    Raises NotFound, InvalidOperation, ValidationError, UserExists.
    """
    links = InviteLink.objects.select_for_update(no_key=True, of=("self",)).select_related("role")
    link = open_invite_link(token, links=links)
    new = NewAccount(
        username=username or email, name=name, email=email, root_role=link.role_id, password=password
    )
    user = create_account(new, caller=Caller.system())
    link.users.add(user)
    note_custody(user, Custody.How.SIGNED_UP, caller=Caller(user=find_maker(link.created_by)))
    event = Event(
        type=EventType.PUBLIC_SIGNUP_TOKEN_USER_ADDED, subject=link.name, after={"username": user.username}
    )
    record(event, actor=Caller(user=user))
    return user
