"""API tokens: creating, hashing and looking up their secrets, in the format of the reference server.

Remembers the tokens that people and services used last, so that most requests need no query for their
caller.

Each worker's watcher (`sdk/watcher/`) reads them again, with their users and rights, whenever it reads the SDK tokens:
when a commit notifies it, and at least twice a second. A token counts only while that read began less than a second
ago and no process on this machine has committed a change since, so the next request after a deactivation is refused.
"""

import hashlib
import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.crypto import salted_hmac

from flagadmin.core.caches import BoundedDict
from flagadmin.core.db import commits, outages
from flagadmin.core.db.connections import Connection
from flagadmin.core.db.outages import REPLICA, has_replica, replica
from flagadmin.core.db.standby import committed_locally
from flagadmin.core.errors import AuthenticationRequired, ValidationError
from flagadmin.core.http.responses import iso
from groups.access import RIGHTS, Caller
from groups.models import ApiToken, User

SURE_SECONDS = 1.0
MAX_TOKENS = 30  # reading the rights of each takes some tenths of a millisecond
IDLE = 10.0  # seconds after which an unused token is no longer read

Row = tuple[Any, ...]


class _Read(NamedTuple):
    """Rows by the hashes of their secrets.

    ``began`` is on the monotonic clock; ``committed`` is the number of commits until then.
    """

    rows: Mapping[str, Row]
    began: float
    committed: int


_NOTHING = _Read({}, float("-inf"), 0)


class TokenMemory:
    """One for each worker. Thread-safe."""

    def __init__(self) -> None:
        self._read = _NOTHING
        self._used: dict[str, float] = {}  # with the time of the last use

    def find(self, digest: str) -> Row | None:
        """The row of the token with this hash, if it is certainly the stored one. Counts as a use."""
        read = self._read  # as a whole, which another thread may replace
        row = read.rows.get(digest)
        now = time.monotonic()
        if row is None or now - read.began >= SURE_SECONDS or commits.count() != read.committed:
            return None
        self._used[digest] = now
        return row

    def use(self, digest: str) -> None:
        """Makes the watcher read this existing token, unless too many are in use."""
        if digest in self._used or len(self._used) < MAX_TOKENS:
            self._used[digest] = time.monotonic()

    def list_used(self) -> list[str]:
        """The hashes of the tokens in use."""
        now = time.monotonic()
        for digest, used_at in list(self._used.items()):
            if now - used_at > IDLE:
                self._used.pop(digest, None)
        return list(self._used)

    def learn(self, rows: Mapping[str, Row], *, began: float, committed: int) -> None:
        """Replaces all rows with those of a read that began at this time, after this many commits."""
        self._read = _Read(rows, began, committed)

    def forget(self) -> None:
        self._read = _NOTHING


token_memory = TokenMemory()


SECRET_BYTES = 28  # 56 hexadecimal digits
_KEY = re.compile(r"(?P<project>[^:\s]+):(?P<environment>[^.\s]+)\.\S+")
# project:environment.v2_IDENTIFIER_SECRET, the reference's form for tokens that are listed by an identifier.
_IDENTIFIER = re.compile(r".*\.v2_[A-Za-z0-9_-]{22}", re.DOTALL)
_REST = re.compile(r"_[A-Za-z0-9_-]{43}")
MIN_SECRET_LENGTH = 16  # the minimum length of the random part of a secret that was not generated here
PERSONAL = "user:"
LAST_USED_STEP = timedelta(minutes=1)
SDK_KINDS = frozenset({ApiToken.Kind.BACKEND, ApiToken.Kind.FRONTEND})


sdk_tokens: BoundedDict[str, ApiToken] = BoundedDict(2_000)
"""The most recently used SDK tokens by the hashes of their secrets, for outages of the database."""


def make_secret(
    kind: str,
    *,
    projects: Sequence[str] | None = None,
    environment: str | None = None,
    credential: str | None = None,
) -> str:
    """A new secret: `project:environment.<56 hex>`, `*` for all projects (None), `[]` for several.

    With the secret that its creator uses here (`credential`), the form is
    `project:environment.v2_IDENTIFIER_SECRET`, and `recover_secret` can derive it again.
    """
    random_part = secrets.token_hex(SECRET_BYTES)
    if kind == ApiToken.Kind.PERSONAL:
        return PERSONAL + random_part
    scope = "*" if projects is None else projects[0] if len(projects) == 1 else "[]"
    start = f"{scope}:{environment or '*'}."
    if credential is None:
        return start + random_part
    return _derive_secret(f"{start}v2_{secrets.token_urlsafe(16)}", credential, settings.SECRET_KEY)


def _derive_secret(identifier: str, credential: str, key: str | bytes) -> str:
    mac = salted_hmac("groups.tokens", f"{identifier} {credential}", secret=key, algorithm="sha256").digest()
    return f"{identifier}_{urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def recover_secret(credential: str, token: ApiToken) -> str | None:
    """The token's secret, if its creator used this credential; otherwise None.

    It is derived from the credential and the server's key. The server alone cannot derive it, because it stores no
    secrets.
    """
    if find_identifier(token) is None:
        return None
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        secret = _derive_secret(token.prefix, credential, key)
        if hmac.compare_digest(hash_secret(secret), token.secret_hash):
            return secret
    return None


def find_identifier(token: ApiToken) -> str | None:
    """The public identifier of a token with a secret of the form ``….v2_IDENTIFIER_SECRET``, otherwise None."""
    return token.prefix if _IDENTIFIER.fullmatch(token.prefix) else None


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def make_visible_prefix(secret: str) -> str:
    """The part of a secret that may be shown: its identifier, or its scope and a quarter of the rest, at most 6
    characters.
    """
    start, rest = secret[:-44], secret[-44:]
    if _IDENTIFIER.fullmatch(start) and _REST.fullmatch(rest):
        return start
    separator = secret.find(".") if "." in secret else secret.find(":")
    return secret[: separator + 1 + min(6, (len(secret) - separator - 1) // 4)]


def parse_scope(secret: str) -> tuple[str, str]:
    """``(project, environment)`` of a secret ``project:environment.random``. Raises ValueError."""
    match = _KEY.fullmatch(secret)
    if match is None:
        raise ValueError("not of the form project:environment.secret")
    return match["project"], match["environment"]


def find_token(secret: str, *, now: datetime) -> ApiToken:
    """The token with its user. Raises AuthenticationRequired if the secret is unknown or has expired."""
    digest = hash_secret(secret)
    if row := token_memory.find(digest):
        token: ApiToken | None = _make_token(row)
    else:
        token = _read_token(digest, personal=secret.startswith(PERSONAL))
    if token is None or not hmac.compare_digest(token.secret_hash, digest):
        raise AuthenticationRequired("API token not found.")
    if token.is_pending:
        raise AuthenticationRequired(
            "This API token waits for its environment or its projects to be created."
        )
    if token.has_expired(now):
        raise AuthenticationRequired("This API token has expired.")
    if token.user is not None and not token.user.is_active:
        raise AuthenticationRequired("The account of this API token is disabled.")
    return token


def _read_token(digest: str, *, personal: bool) -> ApiToken | None:
    """The token; during an outage, from the replica or from this worker's memory."""

    is_replicated = has_replica() and not replica.is_lost

    def read() -> ApiToken | None:
        if not is_replicated:
            return _query_token(digest, personal=personal, using=DEFAULT_DB_ALIAS)
        if not outages.reach.is_lost:
            with suppress(*outages.UNREACHABLE):
                return _query_token(digest, personal=personal, using=DEFAULT_DB_ALIAS)
        return _query_token(digest, personal=personal, using=REPLICA)

    using = REPLICA if is_replicated else DEFAULT_DB_ALIAS
    token = outages.read(read, lambda: sdk_tokens.get(digest), using=using)
    if token is None:
        sdk_tokens.pop(digest, None)
    elif token.kind in SDK_KINDS:
        sdk_tokens[digest] = token
    else:
        token_memory.use(digest)
    return token


def _query_token(digest: str, *, personal: bool, using: str) -> ApiToken | None:
    """Looks up the token, and for a personal one its user with the rights.

    The SQL is cached, because every API request runs it.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(make_lookup(personal=personal), [[digest]])
        row = cursor.fetchone()
    return None if row is None else _make_token(row)


def _make_token(row: Row) -> ApiToken:
    """The token of a row that `make_lookup` selects. Its user is a row of its own, or absent."""
    token_fields, user_fields = _list_fields()
    token = ApiToken.from_db(DEFAULT_DB_ALIAS, token_fields, row[: len(token_fields)])
    rights = row[len(token_fields) :]
    if rights and token.user_id is not None:
        token.user_rights = rights[0]
        token.user = User.from_db(DEFAULT_DB_ALIAS, user_fields, rights[1:])
    return token


@cache
def make_lookup(*, personal: bool) -> str:
    """The SQL that finds tokens by a list of hashes; with ``personal``, also their users and these users' rights."""
    query = ApiToken.objects.filter(secret_hash="-").order_by()
    if personal:
        rights = RawSQL(RIGHTS.format(user="groups_apitoken.user_id"), ())  # noqa: S611 - a constant
        query = query.select_related("user").annotate(rights=rights)
    sql, _ = query.query.sql_with_params()
    return sql.replace('"secret_hash" = %s', '"secret_hash" = ANY(%s)')


@cache
def _list_fields() -> tuple[list[str], list[str]]:
    token, user = ([field.attname for field in model._meta.concrete_fields] for model in (ApiToken, User))
    return token, user


async def read_used_tokens(connection: Connection) -> dict[str, Row]:
    """The rows of the tokens that `token_memory` has in use, by their hashes. At most one statement."""
    if not (digests := token_memory.list_used()):
        return {}
    at = _list_fields()[0].index("secret_hash")
    rows = await (await connection.execute(make_lookup(personal=True).encode(), [digests])).fetchall()
    return {row[at]: row for row in rows}


def note_use(token: ApiToken) -> None:
    """Updates the last-used time, at most once a minute for each token. Never waits for a lock or a standby."""
    now = timezone.now()
    if outages.reach.is_lost or outages.is_from_memory():
        return
    if token.seen_at is not None and now - token.seen_at < LAST_USED_STEP:
        return
    _note_unlocked(Q(pk=token.pk), now)


def note_uses(secrets: Iterable[str]) -> None:
    """Updates the last-used time of the tokens with these secrets, in one statement.

    Unknown and expired tokens are skipped. Locked ones are skipped too, so that the statement never waits.
    """
    if hashes := sorted({hash_secret(secret) for secret in secrets}):
        _note_unlocked(Q(secret_hash__in=hashes), timezone.now())


def note_uses_of_ids(ids: Iterable[int]) -> None:
    """Updates the last-used time of the tokens with these ids, as `note_uses` does."""
    _note_unlocked(Q(pk__in=sorted(ids)), timezone.now())


def _note_unlocked(condition: Q, now: datetime) -> None:
    valid = ApiToken.objects.filter(
        condition, _match_not_noted(now), Q(expires_at=None) | Q(expires_at__gt=now)
    )
    unlocked = valid.select_for_update(skip_locked=True).order_by("pk").values("pk")
    with committed_locally():
        ApiToken.objects.filter(_match_not_noted(now), pk__in=unlocked).update(seen_at=now)


def _match_not_noted(now: datetime) -> Q:
    return Q(seen_at=None) | Q(seen_at__lt=now - LAST_USED_STEP)


def check_not_expired(expires_at: datetime | None) -> None:
    """Raises ValidationError if a new token could never be used."""
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError.at("expiresAt", "must be in the future, or null for never")


def check_expiry(caller: Caller, expires_at: datetime | None) -> None:
    """Raises ValidationError if a token with this expiry would outlive the caller's own."""
    end = caller.token.expires_at if caller.token else None
    if end is not None and (expires_at is None or expires_at > end):
        raise ValidationError.at(
            "expiresAt", f"must not be later than {iso(end)}, when the token that you use here expires"
        )
