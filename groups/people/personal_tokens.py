"""Personal tokens: API tokens that act as one user or service account, with exactly its permissions."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record, record_all
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NameExists, NoAccess, NotFound
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from groups.models import ApiToken, Custody, User
from groups.people.custody import note_custody
from groups.tokens import check_expiry, check_not_expired, hash_secret, make_secret, make_visible_prefix

Kind = ApiToken.Kind


def read_personal_tokens(user: User) -> list[ApiToken]:
    """The user's tokens, newest first."""
    return list(user.tokens.filter(kind=Kind.PERSONAL))


def read_tokens_by_user(users: Iterable[User]) -> dict[int, list[ApiToken]]:
    """The personal tokens of many users, by user id. One query."""
    by_user: dict[int, list[ApiToken]] = {}
    for token in ApiToken.objects.filter(kind=Kind.PERSONAL, user__in=[user.pk for user in users]):
        by_user.setdefault(token.user_id or 0, []).append(token)
    return by_user


def get_own_user(caller: Caller) -> User:
    """The caller's account. Raises NoAccess for an admin token, which does not belong to an account."""
    if caller.user is None:
        raise NoAccess("Personal tokens belong to a person or a service account; an admin token is neither.")
    return caller.user


@transactional
def create_personal_token(
    user: User, *, name: str, expires_at: datetime | None, caller: Caller
) -> tuple[ApiToken, str]:
    """Creates a token and returns it with its secret, which is not stored.

    Users can create tokens for themselves, admins for every account.
    Raises NoAccess, NotFound, NameExists, ValidationError (it would outlive the token used to create it).
    """
    _lock(user, caller)
    check_not_expired(expires_at)
    check_expiry(caller, expires_at)
    if user.tokens.filter(kind=Kind.PERSONAL, name=name).exists():
        raise NameExists(f'{user} already has a token named "{name}".')
    secret = make_secret(Kind.PERSONAL)
    token = ApiToken.objects.create(
        kind=Kind.PERSONAL,
        name=name,
        secret_hash=hash_secret(secret),
        prefix=make_visible_prefix(secret),
        user=user,
        created_by=caller.name,
        expires_at=expires_at,
    )
    if caller.id != user.pk:
        note_custody(user, Custody.How.TOKEN, caller=caller)
    record(Event(type=EventType.PAT_CREATED, subject=name, after=_make_document(token)), actor=caller)
    return token, secret


@transactional
def delete_personal_token(user: User, token_id: int, *, caller: Caller) -> None:
    """Revokes a token. Raises NoAccess, NotFound."""
    _lock(user, caller)
    token = get_or_404(
        user.tokens, f"{user} has no token with id {token_id}.", kind=Kind.PERSONAL, id=token_id
    )
    record(Event(type=EventType.PAT_DELETED, subject=token.name, before=_make_document(token)), actor=caller)
    token.delete()


def delete_personal_tokens(user: User, *, caller: Caller) -> None:
    """Revokes all tokens of ``user``, which must be locked."""
    tokens = read_personal_tokens(user)
    record_all(
        (
            Event(type=EventType.PAT_DELETED, subject=token.name, before=_make_document(token))
            for token in tokens
        ),
        actor=caller,
    )
    user.tokens.filter(kind=Kind.PERSONAL).delete()


def _lock(user: User, caller: Caller) -> None:
    """Locks the account, to keep token names unique per user and to prevent its deletion."""
    if caller.id != user.pk:
        caller.check(Permission.ADMIN)
    if not User.objects.select_for_update(no_key=True).filter(pk=user.pk).exists():
        raise NotFound(f"Account {user} not found.")


def _make_document(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "description": token.name,
        "userId": token.user_id,
        "username": token.user.username if token.user else None,
        "expiresAt": iso(token.expires_at),
        "prefix": token.prefix,
    }
