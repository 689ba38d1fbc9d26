"""Reads invite links."""

from django.db.models import Q, QuerySet
from django.utils import timezone

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import InvalidOperation, NotFound
from groups.access import Caller, Permission
from groups.login.rules import check_passwords_on
from groups.models import InviteLink
from groups.sign_up.rules import MAX_USERS, may_be_given
from groups.tokens import hash_secret

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
