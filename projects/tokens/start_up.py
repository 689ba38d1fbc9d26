"""Creates API tokens from environment variables at start-up, in the reference's format.

``INIT_ADMIN_API_TOKENS='*:*.secret'``,
``INIT_BACKEND_API_TOKENS='*:development.secret,shop:production.secret'`` (older name
``INIT_CLIENT_API_TOKENS``), ``INIT_FRONTEND_API_TOKENS``.
"""

import logging
import os
from collections.abc import Iterator, Mapping

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from flagadmin.db.transactions import transactional
from flagadmin.errors import ValidationError
from groups.access import Caller
from groups.models import ApiToken, StartUpKey
from groups.tokens import SHORTEST_SECRET, hash_secret, scope_of_key
from projects.tokens.actions import NewToken, create_token

log = logging.getLogger("flagadmin.setup")

VARIABLES = {
    "INIT_ADMIN_API_TOKENS": ApiToken.Kind.ADMIN,
    "INIT_BACKEND_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_CLIENT_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_FRONTEND_API_TOKENS": ApiToken.Kind.FRONTEND,
}
EVERY = "*"
# An arbitrary advisory lock number. It serialises servers that start at the same time.
_LOCK = 5_172_031


@transactional
def create_init_tokens(environ: Mapping[str, str] | None = None) -> int:
    """Creates the tokens that were never created before and returns their number.

    Existing tokens are never changed or removed, and a revoked token stays revoked. Raises
    ImproperlyConfigured naming the variable and the position of the token in it, never the secret.
    """
    created = 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    for variable, number, secret in _given(os.environ if environ is None else environ):
        where = f"{variable}, token {number}"
        kind = VARIABLES[variable]
        digest = hash_secret(secret)
        present = ApiToken.objects.filter(secret_hash=digest).first()
        if present is None and StartUpKey.objects.filter(secret_hash=digest).exists():
            log.warning("%s was revoked. It is not created again; remove it from the environment.", where)
        elif present is None:
            _create(kind, variable, secret, where)
            StartUpKey.objects.create(secret_hash=digest)
            created += 1
        elif present.kind != kind:
            raise ImproperlyConfigured(f"{where}: this secret already belongs to a {present.kind} token.")
    return created


def _given(environ: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for variable in VARIABLES:
        keys = (key.strip() for key in environ.get(variable, "").split(","))
        yield from ((variable, number, key) for number, key in enumerate(filter(None, keys), start=1))


def _create(kind: str, variable: str, secret: str, where: str) -> None:
    form = "*:*.SECRET" if kind == ApiToken.Kind.ADMIN else "PROJECT:ENVIRONMENT.SECRET (project * for all)"
    try:
        project, environment = scope_of_key(secret)
    except ValueError:
        raise ImproperlyConfigured(f"{where}: a {kind} token has the form {form}.") from None
    if kind == ApiToken.Kind.ADMIN and (project, environment) != (EVERY, EVERY):
        raise ImproperlyConfigured(f"{where}: a {kind} token has the form {form}.")
    if len(secret.partition(".")[2]) < SHORTEST_SECRET:
        raise ImproperlyConfigured(
            f"{where}: the part after the dot must have at least {SHORTEST_SECRET} characters."
        )
    new = NewToken(
        name=f"from {variable}",
        kind=kind,
        projects=None if project == EVERY else (project,),
        environment=None if environment == EVERY else environment,
    )
    try:
        create_token(new, caller=Caller.system(), secret=secret)
    except ValidationError as error:
        problems = "; ".join(problem.message for problem in error.details)
        raise ImproperlyConfigured(f"{where}: {problems}") from error
