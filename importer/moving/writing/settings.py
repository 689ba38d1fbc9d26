"""Moves SDK tokens and settings of the whole server: integrations, and origins for the frontend API.

Creates integrations of another server. The app of integrations, which is above this one, provides the
function.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.errors import Conflict
from flagadmin.core.hook import Hook
from flagadmin.core.installation.state import read_frontend_origins
from groups.models import ApiToken, StartUpKey
from groups.tokens import MIN_SECRET_LENGTH, hash_secret, parse_scope
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import SourceAddon, SourceToken
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import SYSTEM, Edits, change_line, try_alone
from projects.installation.actions import ORIGINS, set_frontend_origins
from projects.tokens.actions import NewToken, make_scope_document, store_token
from projects.tokens.pending import Places
from projects.tokens.start_up import EVERY, KINDS, SEVERAL, Malformed, read_tokens

EVERYBODY = ["*"]
"""The default origins of a server."""
MASK = "*****"
"""Unleash's API shows it in place of secrets."""
SWITCHED_OFF = (
    "comes switched off, because the other server still sends: switch it on here when you switch it off there"
)


def move_settings(installation: Installation, edits: Edits) -> Iterator[Line]:
    subject = "origins that may call the frontend API"
    yield from try_alone(subject, lambda: _move_origins(subject, installation.origins, edits))
    for addon in installation.addons:
        subject = f"integration {addon.id} ({', '.join(filter(None, (addon.provider, addon.description)))})"
        # As for tokens: an integration moves once, and stays deleted if it is deleted here.
        digest = hash_secret(f"{installation.address} integration {addon.id}")
        if StartUpKey.objects.filter(secret_hash=digest).exists():
            continue
        if MASK in addon.parameters.values():
            detail = "its secrets are not readable: move with --database, or set it up again here"
            yield Line(Kind.CANNOT, subject, detail)
        else:
            yield from try_alone(subject, partial(_move_integration, subject, addon, digest))


def _move_origins(subject: str, origins: list[str], edits: Edits) -> Iterator[Line]:
    before = [*read_frontend_origins()]
    wanted = list(dict.fromkeys(origin.strip().rstrip("/").lower() for origin in origins))
    if origins == EVERYBODY or sorted(wanted) == sorted(before):
        return
    is_edited = edits.has(EventType.SETTING_UPDATED, ORIGINS)
    if not is_edited:
        set_frontend_origins(wanted, caller=SYSTEM)
    changes = f"{', '.join(before) or 'none'} → {', '.join(wanted) or 'none'}"
    yield change_line(subject, changes, "", is_edited=is_edited)


def _move_integration(subject: str, addon: SourceAddon, digest: str) -> Iterator[Line]:
    unknown = create_switched_off(addon.model_dump(exclude={"id"}))
    StartUpKey.objects.create(secret_hash=digest)
    yield Line(Kind.CREATE, subject, SWITCHED_OFF)
    if unknown:
        yield Line(Kind.CANNOT, f"events of {subject}", f"do not exist here: {', '.join(unknown)}")


ENTRY = {"name", "type", "environment", "projects", "expires_at"}
"""The listed properties of a token besides its secret."""


def move_tokens(installation: Installation) -> Iterator[Line]:
    """Moves SDK tokens with their secrets, so that applications keep theirs. Admin tokens must be renewed by people."""
    places = Places.read()
    expected = _add_refused(places, installation)
    for token in installation.tokens:
        new, subject = read_token(token), f"token {token.name}"
        yield from _move_token(subject, new, token.secret, token.digest, places, expected)
        if token.alias and isinstance(new, NewToken):
            alias = _read_bare(token, token.alias)
            if isinstance(alias, NewToken):
                alias = replace(alias, name=f"{alias.name} (alias)")
            yield from _move_token(f"alias of {subject}", alias, token.alias, None, places, expected)


def _move_token(
    subject: str, new: NewToken | Malformed, secret: str, digest: str | None, here: Places, expected: Places
) -> Iterator[Line]:
    """Stores a separate token for an alias too, because secrets are never stored in clear text here."""
    if isinstance(new, Malformed):
        yield Line(Kind.CANNOT, subject, str(new))
        return
    hashed, scope = digest or hash_secret(secret), make_scope_document(new)
    if ApiToken.objects.filter(secret_hash=hashed).exists():
        return
    if StartUpKey.objects.filter(secret_hash=hashed).exists():
        yield Line(Kind.CANNOT, subject, "was revoked here")
    elif missing := expected.describe_missing(scope):
        yield Line(Kind.CANNOT, subject, f"needs {missing}")
    else:
        if not here.describe_missing(scope):
            store_token(new, caller=SYSTEM, secret=secret, digest=digest)
            # As for tokens of environment variables: a token revoked here stays revoked.
            StartUpKey.objects.create(secret_hash=hashed)
        yield Line(Kind.CREATE, subject, f"{new.kind}, {new.environment}, with its secret")


def _add_refused(places: Places, installation: Installation) -> Places:
    """The places that exist here, or would without refusals, to plan tokens for them."""
    if not installation.refused:
        return places
    environments = places.environments | {each.name for each in installation.environments}
    return Places(environments, places.projects | installation.refused)


def read_token(token: SourceToken) -> NewToken | Malformed:
    """The token in our form, or the reason why it cannot be moved."""
    kind = KINDS.get(token.type.lower())
    if kind is None or kind == ApiToken.Kind.ADMIN:
        return Malformed(f"is of type {token.type}: create one here for each script that needs it")
    if token.secure and token.digest is None:
        return Malformed("its secret is not readable there: create a new one, or move with --database")
    if token.expires_at is not None and _is_past(token.expires_at):
        return Malformed("has expired")
    try:
        parse_scope(token.secret)
    except ValueError:
        return _read_bare(token, token.secret)
    return _read_entry(token, token.secret)


def _read_bare(token: SourceToken, secret: str) -> NewToken | Malformed:
    """Reads a secret that does not begin with its scope, such as one of Unleash 3: the list has the scope."""
    if len(secret) < MIN_SECRET_LENGTH:
        return Malformed(f"has fewer than {MIN_SECRET_LENGTH} characters: give its applications a new secret")
    if token.environment in (None, EVERY):
        return Malformed("is for all environments, as only admin tokens can be here: create one for each")
    scope = token.projects[0] if len(token.projects) == 1 else SEVERAL
    return _read_entry(token, f"{scope}:{token.environment}.{secret}")


def _read_entry(token: SourceToken, secret: str) -> NewToken | Malformed:
    entry = token.model_dump(by_alias=True, include=ENTRY) | {"secret": secret}
    return next(read_tokens("the source", json.dumps([entry]), KINDS[token.type.lower()])).new


def _is_past(moment: str) -> bool:
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return False  # read_tokens reports the problem
    return parsed.tzinfo is not None and parsed < timezone.now()


def _refuse(values: Mapping[str, Any]) -> list[str]:
    raise Conflict("This server has no integrations.")


create_switched_off = Hook("importer.moving.writing.settings.create_switched_off", _refuse)
"""Creates a disabled integration with the members ``provider``, ``description``, ``parameters``, ``events``,
``projects`` and ``environments``.

Returns the events that do not exist here. Raises ValidationError.
"""
