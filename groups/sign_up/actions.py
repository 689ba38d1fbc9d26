"""Creates, changes and revokes invite links, and signs people up with them.

Reads invite links.

Rules for invite links.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict

from django.db.models import Q, QuerySet
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NotFound, Problem, check_problems
from groups.access import Caller
from groups.login.rules import check_passwords_on
from groups.models import Custody, InviteLink, Role, User
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import find_maker, note_custody
from groups.permissions import BuiltIn, Permission
from groups.roles.actions import find_root_role_id
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


GONE = "This invite link is unknown, has been revoked or has expired. Ask for a new one."


def read_invite_links(caller: Caller) -> QuerySet[InviteLink]:
    """All of them, newest first. Raises NoAccess."""
    caller.check(Permission.ADMIN)
    return InviteLink.objects.select_related("role").prefetch_related("users")


def access_invite_link(caller: Caller, key: str) -> InviteLink:
    """The link with this token, or with this visible start of one. Raises NoAccess, NotFound."""
    return find_invite_link(read_invite_links(caller), key)


def find_invite_link(links: QuerySet[InviteLink], key: str) -> InviteLink:
    """The link among these. Raises NotFound."""
    return get_or_404(links.filter(Q(key=key) | Q(token_hash=hash_secret(key))), "Invite link not found.")


def open_invite_link(token: str, *, links: QuerySet[InviteLink] | None = None) -> InviteLink:
    """The link, if it currently accepts sign-ups.

    Raises NotFound, InvalidOperation (passwords are off, its role has become an admin role, too many people).
    """
    check_passwords_on()
    candidates = InviteLink.objects.select_related("role") if links is None else links
    link = candidates.filter(token_hash=hash_secret(token)).first()
    if link is None or not link.is_open(timezone.now()):
        raise NotFound(GONE)
    if not may_be_given(link.role):
        raise InvalidOperation(
            f"This invite link gives the role {link.role}, which can do everything by now."
        )
    if link.users.count() >= MAX_USERS:
        raise InvalidOperation(
            f"{MAX_USERS:,} people have signed up with this invite link. Ask for a new one."
        )
    return link


MAX_LIFETIME = timedelta(days=365)
MAX_USERS = 1_000  # per link, in case it leaks


def problems_of_expiry(expires_at: datetime, *, now: datetime) -> Iterator[Problem]:
    if expires_at <= now:
        yield Problem("expiresAt", "Must be in the future.")
    elif expires_at > now + MAX_LIFETIME:
        yield Problem("expiresAt", f"At most {MAX_LIFETIME.days} days from now.")


def may_be_given(role: Role) -> bool:
    """Whether a link may assign this root role: not if it includes all permissions."""
    return (
        role.is_root
        and role.pk != BuiltIn.ADMIN.value
        and not role.permissions.filter(permission=Permission.ADMIN.value).exists()
    )
