"""Creates API tokens from environment variables at start-up.

Their values are text, separated by commas: ``*:development.secret,shop:production.secret``. Or JSON, a list of tokens
or the answer of ``GET /api/admin/api-tokens``: ``[{"secret": "[]:production.secret", "projects": ["shop", "pay"],
"expiresAt": "2030-01-01T00:00:00Z", "tokenName": "checkout"}]``.
"""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError

from flagadmin.core.db.transactions import transactional
from flagadmin.core.http.responses import iso
from flagadmin.core.installation.state import ignore_maintenance
from groups.access import Caller
from groups.models import ApiToken, StartUpKey
from groups.tokens import MIN_SECRET_LENGTH, hash_secret, parse_scope
from projects.tokens.actions import NewToken, make_scope_document, store_token
from projects.tokens.pending import Places, activate_tokens, lock_pending_tokens

log = logging.getLogger("flagadmin.setup")

VARIABLES = {
    "INIT_ADMIN_API_TOKENS": ApiToken.Kind.ADMIN,
    "INIT_BACKEND_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_CLIENT_API_TOKENS": ApiToken.Kind.BACKEND,
    "INIT_FRONTEND_API_TOKENS": ApiToken.Kind.FRONTEND,
}


@transactional
def create_init_tokens(environ: Mapping[str, str] | None = None) -> int:
    """Creates the tokens that were never created before and returns their number.

    A token for an environment or project that does not exist yet is created as pending. Existing tokens are never
    changed or removed (except that a pending one gets the scope of its variable, and an expiry if it had none), and
    a revoked token stays revoked. Invalid entries are logged by variable and position, never with the secret.
    """
    ignore_maintenance()
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
    """Creates the token if it is new, and returns whether it was."""
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


EVERY, SEVERAL = "*", "[]"
KINDS = {"admin": "admin", "backend": "backend", "client": "backend", "frontend": "frontend"}
_JSON = re.compile(r"\s*(\{|\[\s*\{)")
Name = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]+$")]
NO_NUL = r"^[^\x00]*$"


def _convert_to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("datetime", "Input should be in the years 1 to 9999 in UTC") from None


class Malformed(Exception):
    """An invalid token. The message gives the reason, without the secret."""


class Entry(BaseModel):
    """A token in JSON. Ignores other members, which ``GET /api/admin/api-tokens`` returns."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    secret: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500, pattern=NO_NUL)]
    tokenName: Annotated[str, StringConstraints(max_length=255, pattern=NO_NUL)] = ""
    type: str | None = None
    environment: Name | None = None
    projects: list[Name] | None = None
    expiresAt: Annotated[AwareDatetime, AfterValidator(_convert_to_utc)] | None = None
    alias: Annotated[str, StringConstraints(max_length=255, pattern=NO_NUL)] | None = None


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token of a variable: ``where`` names it in messages, and ``new`` has its values or its problem."""

    where: str
    secret: str
    new: NewToken | Malformed


def read_tokens(variable: str, value: str, kind: str) -> Iterator[NamedToken]:
    """The tokens of a variable, in its order."""
    try:
        entries = _read_entries(value)
    except ValueError as error:
        yield NamedToken(variable, "", Malformed(str(error)))
        return
    for number, raw in enumerate(entries, start=1):
        where = f"{variable}, token {number}"
        try:
            entry = _read_entry(raw)
            yield NamedToken(where, entry.secret, _make_new_token(entry, kind, variable))
        except Malformed as problem:
            yield NamedToken(where, "", problem)


def _read_entries(value: str) -> list[Any]:
    if not _JSON.match(value):
        return [{"secret": key} for part in value.split(",") if (key := part.strip())]
    try:
        data = json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("this is not valid JSON.") from None
    entries = data.get("tokens") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise ValueError('JSON must be a list of tokens, or an object with the list "tokens".')
    return entries


def _read_entry(raw: Any) -> Entry:
    try:
        return Entry.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_context=False, include_url=False)[0]
        path = ".".join(map(str, problem["loc"]))
        raise Malformed(f"{path}: {problem['msg']}." if path else f"{problem['msg']}.") from None


def _make_new_token(entry: Entry, kind: str, variable: str) -> NewToken:
    """Raises Malformed. The scope is never wider than the one in the secret's prefix."""
    _check_type(entry, kind)
    form = "*:*.SECRET" if kind == ApiToken.Kind.ADMIN else "PROJECT:ENVIRONMENT.SECRET (project * for all)"
    project, environment, random_part = _split_secret(entry, form)
    is_admin = kind == ApiToken.Kind.ADMIN
    if is_admin != (environment == EVERY) or (is_admin and project != EVERY):
        raise Malformed(f"a token of this kind has the form {form}.")
    if is_admin and entry.projects not in (None, [EVERY]):
        raise Malformed("an admin token is for all projects.")
    if len(random_part) < MIN_SECRET_LENGTH:
        raise Malformed(f"the part after the dot must have at least {MIN_SECRET_LENGTH} characters.")
    return NewToken(
        name=entry.tokenName or f"from {variable}",
        kind=kind,
        projects=_read_projects(entry, project),
        environment=None if is_admin else environment,
        expires_at=entry.expiresAt,
        alias=entry.alias or None,
    )


def _check_type(entry: Entry, kind: str) -> None:
    named_kind = KINDS.get((entry.type or kind).lower())
    if named_kind is None:
        raise Malformed("its type must be admin, backend, client or frontend.")
    if named_kind != kind:
        raise Malformed(f"its type is {named_kind}; name it in INIT_{named_kind.upper()}_API_TOKENS.")


def _split_secret(entry: Entry, form: str) -> tuple[str, str, str]:
    """The project, the environment and the random part of the secret."""
    try:
        project, environment = parse_scope(entry.secret)
    except ValueError:
        raise Malformed(f"a token of this kind has the form {form}.") from None
    if entry.secret.endswith("…"):
        raise Malformed("its secret is shortened. Only the answer that created it has all of it.")
    if entry.environment is not None and entry.environment != environment:
        start = f"{project}:{entry.environment}."
        if not entry.secret.startswith(start):
            raise Malformed(f"its secret is for another environment than {entry.environment}.")
        environment = entry.environment
    if max(len(project), len(environment)) > 100:
        raise Malformed("the names of its project and environment have at most 100 characters.")
    return project, environment, entry.secret.removeprefix(f"{project}:{environment}.")


def _read_projects(entry: Entry, project: str) -> tuple[str, ...] | None:
    """The projects in the entry, else the one in the secret; None for all, empty if there are none."""
    named = entry.projects
    if named is None or named == [EVERY]:
        if project == EVERY:
            return None
        # The reference lists a token whose projects were all deleted as one for all projects.
        return () if project == SEVERAL else (project,)
    if EVERY in named or (project not in (EVERY, SEVERAL) and named != [project]):
        raise Malformed("it names other projects than its secret does.")
    return tuple(named)
