"""The scopes of SDK tokens, from memory while the database cannot be reached."""

from flagadmin.core.db import outages
from flagadmin.core.db.replica import has_other_database
from flagadmin.core.errors import AuthenticationRequired
from groups.models import ApiToken
from sdk.token_scope import TokenScope, read_token_scope
from sdk.watcher.watcher import watcher


def token_scope(token: ApiToken, *, using: str) -> TokenScope:
    """As `read_token_scope` reads it; during an outage, as the watcher read it last.

    Raises AuthenticationRequired if the watcher has seen that the token was revoked, ServiceUnavailable if it has
    not yet seen it, and what the database raises if `read_for_sdks` can ask the other one.
    """

    def read() -> TokenScope:
        return read_token_scope(token, using=using)

    if has_other_database(using):
        return read()
    return outages.read(read, lambda: _find_watched_scope(token), using=using)


def _find_watched_scope(token: ApiToken) -> TokenScope | None:
    state = watcher.latest
    if state is None or token.pk not in state.tokens:
        return None
    watched = state.tokens[token.pk]
    if watched is None or watched.secret_hash != token.secret_hash:
        raise AuthenticationRequired("API token not found.")
    return state.scope_of(watched)
