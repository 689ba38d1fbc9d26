"""Creates API tokens from environment variables at start-up (`start_up_values` describes their format)."""

import logging
import os
from collections.abc import Mapping

from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from groups.models import ApiToken, StartUpKey
from groups.tokens import hash_secret
from projects.tokens.actions import NewToken, make_scope_document, store_token
from projects.tokens.pending import Places, activate_tokens, lock_pending_tokens
from projects.tokens.start_up_values import Malformed, read_tokens

log = logging.getLogger("flagadmin.setup")

VARIABLES = {
    "INIT_ADMIN_API_TOKENS": ApiToken.Kind.ADMIN,
    "INIT_BACKEND_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_CLIENT_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_FRONTEND_API_TOKENS": ApiToken.Kind.FRONTEND,
}


@changing(ignores_maintenance=True)
@transactional
def create_init_tokens(environ: Mapping[str, str] | None = None) -> int:
    """Creates the tokens that were never created before and returns their number.

    A token for an environment or project that does not exist yet is created as pending. Existing tokens are never
    changed or removed (except that a pending one takes the scope that it has now, and an expiry if it had none), and
    a revoked token stays revoked. Entries that cannot be taken are logged by variable and position, never with the
    secret.
    """
    environ = os.environ if environ is None else environ
    lock_pending_tokens()
    places = Places.read()
    created = 0
    for variable, kind in VARIABLES.items():
        for token in read_tokens(variable, environ.get(variable, ""), kind):
            if isinstance(token.new, Malformed):
                log.warning("%s is not taken: %s", token.where, token.new)
            else:
                created += _take(token.where, token.secret, token.new, places)
    activate_tokens(caller=Caller.system())
    return created


def _take(where: str, secret: str, new: NewToken, places: Places) -> bool:
    """Creates the token if it is new, and says whether it did."""
    digest = hash_secret(secret)
    present = ApiToken.objects.filter(secret_hash=digest).first()
    if present is None and StartUpKey.objects.filter(secret_hash=digest).exists():
        log.warning("%s was revoked. It is not created again; remove it from the environment.", where)
        return False
    missing = places.describe_missing(make_scope_document(new))
    if missing:
        log.warning("%s is pending: it waits for %s.", where, missing)
    if present is not None:
        _compare(where, present, new)
        return False
    store_token(new, caller=Caller.system(), secret=secret, pending=bool(missing))
    StartUpKey.objects.create(secret_hash=digest)
    return True


def _compare(where: str, present: ApiToken, new: NewToken) -> None:
    if present.kind != new.kind:
        log.warning("%s is not taken: this secret already belongs to a %s token.", where, present.kind)
        return
    if present.is_pending:
        present.pending_scope = make_scope_document(new)
        present.expires_at = present.expires_at or new.expires_at
        present.save(update_fields=["pending_scope", "expires_at"])
    if new.expires_at is not None and new.expires_at != present.expires_at:
        expiry = f"expires at {iso(present.expires_at)}" if present.expires_at else "does not expire"
        log.warning("%s exists and %s; its expiresAt here is not applied.", where, expiry)
