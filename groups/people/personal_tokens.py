"""Personal tokens: API tokens that act as one user or service account, with exactly its permissions.

Records who else could act as an account, finds accounts that may belong to one person, and confirms
accounts.

An account does not count as a second person beside its creators until it is confirmed. See `Custody`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record, record_all
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NameExists, NoAccess, NotFound, choices
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from groups.models import ApiToken, Custody, User
from groups.people.queries import find_account
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


How = Custody.How


def note_custody(account: User, how: How, *, caller: Caller) -> None:
    """Records that the caller could act as the account from now on. For an API token, its creator is recorded."""
    keeper = caller.user
    if keeper is None and caller.token is not None:
        keeper = find_maker(caller.token.created_by)
    if keeper is not None and keeper.pk != account.pk:
        Custody.objects.create(account=account, keeper=keeper, how=how)


def find_maker(username: str) -> User | None:
    """The account named in `created_by` of a token or link, if it still exists."""
    return User.objects.filter(username=username).first() if username else None


def hand_on(user: User) -> None:
    """Passes the accounts kept by an account on to its own keepers, before it is deleted."""
    keepers = set(Custody.objects.open().filter(account=user).values_list("keeper", flat=True))
    kept = list(Custody.objects.open().filter(keeper=user))
    for keeper in keepers:
        for custody in kept:
            handed = Custody.objects.create(account=custody.account, keeper_id=keeper, how=custody.how)
            Custody.objects.filter(pk=handed.pk).update(since=custody.since)


def end_custody(user: User, by: str) -> None:
    """Ends the records because the identity provider or SCIM vouches for the account's person."""
    Custody.objects.filter(account=user, confirmed_at=None).update(
        confirmed_at=timezone.now(), confirmed_by=by
    )


class Tie(NamedTuple):
    """Why two accounts may belong to one person. ``origin`` describes the `Custody`; "" if both have the
    same keeper.
    """

    account: int
    origin: str


class Ties:
    """The keepers of accounts, directly or through other accounts that they keep. One query for each generation."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._kept: dict[int, dict[int, Custody]] = {}
        fresh = set(ids)
        while fresh:
            rows = Custody.objects.open().filter(account__in=fresh).select_related("keeper", "account")
            for custody in rows:
                self._kept.setdefault(custody.account_id, {}).setdefault(custody.keeper_id, custody)
            fresh = {keeper for key in fresh for keeper in self._kept.get(key, {})} - self._kept.keys()
        self._admins = set(User.objects.admins().values_list("pk", flat=True)) if self._kept else set()

    def list_keepers(self, account: int) -> set[int]:
        """All keepers, through any number of others."""
        found: set[int] = set()
        fresh = {account}
        while fresh:
            fresh = {keeper for key in fresh for keeper in self._kept.get(key, {})} - found
            found |= fresh
        return found - {account}

    def find_tie(self, one: int, other: int) -> Tie | None:
        """The reason why the two may be one person; None if they are two.

        Two accounts kept by an admin are two people: admins set up everyone's accounts, and need no second one to
        make changes.
        """
        keepers, others = self.list_keepers(one), self.list_keepers(other)
        if other in keepers:
            return self._describe(one)
        if one in others:
            return self._describe(other)
        return self._describe(one) if (keepers & others) - self._admins else None

    def _describe(self, account: int) -> Tie:
        custody = next(iter(self._kept[account].values()))
        return Tie(account, custody.words)


def find_confirmers(account: User) -> list[User]:
    """The people who may confirm the account, by user name: admins, except the account itself and its keepers."""
    people = list(User.objects.people().active().admins().distinct().order_by("username"))
    ties = Ties([account.pk, *(user.pk for user in people)])
    return [user for user in people if user.pk != account.pk and ties.find_tie(account.pk, user.pk) is None]


def say_who_confirms(account: User) -> str:
    """``Ada or Bo may confirm the account.``"""
    names = [user.display_name for user in find_confirmers(account)]
    if not names:
        return "Nobody else is an admin who may confirm the account."
    return f"{choices(names, limit=5)} may confirm the account."


@transactional
def confirm_account(user_id: int, *, caller: Caller) -> User:
    """Confirms that the account's person is not its creator: it counts as a second person from now on.

    Raises NoAccess, NotFound, InvalidOperation (the caller's own account, one that they created, a program).
    """
    caller.check(Permission.ADMIN)
    user = find_account(User.objects.select_for_update(no_key=True), user_id, is_service=False)
    if caller.user is None or caller.user.is_service:
        raise InvalidOperation("Only people can confirm accounts.")
    if caller.user not in find_confirmers(user):
        raise InvalidOperation(f"You cannot confirm {user}. {say_who_confirms(user)}")
    opened = list(Custody.objects.open().filter(account=user).select_related("keeper"))
    if opened:
        end_custody(user, caller.name)
        before = {"keepers": [custody.keeper.username for custody in opened]}
        record(
            Event(type=EventType.USER_CONFIRMED, subject=user.username, before=before, after={"keepers": []}),
            actor=caller,
        )
    return user


def list_custodies(account: User) -> list[Custody]:
    """The records that count now, the oldest first."""
    return list(Custody.objects.open().filter(account=account).select_related("keeper", "account"))


def read_origins(accounts: Iterable[int], keepers: Iterable[int]) -> Mapping[tuple[int, int], str]:
    """The origins of accounts by account and keeper, such as ``invited``, including confirmed and old ones."""
    rows = Custody.objects.filter(account__in=set(accounts), keeper__in=set(keepers)).order_by("-id")
    return {(row.account_id, row.keeper_id): How(row.how).label for row in rows}
