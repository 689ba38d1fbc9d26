"""The SDK tokens of another installation, as tokens of this one."""

import json
from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from groups.models import ApiToken, StartUpKey
from groups.tokens import hash_secret
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import SourceToken
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import SYSTEM
from projects.tokens.actions import NewToken, make_scope_document, store_token
from projects.tokens.pending import Places
from projects.tokens.start_up_values import KINDS, Malformed, read_tokens


def move_tokens(installation: Installation) -> Iterator[Line]:
    """Takes SDK tokens with their secrets, so that applications keep theirs. Admin tokens are for people to renew."""
    places = Places.read()
    for token in installation.tokens:
        new, subject = read_token(token), f"token {token.name}"
        if isinstance(new, Malformed):
            yield Line(Kind.CANNOT, subject, str(new))
            continue
        digest = token.digest or hash_secret(token.secret)
        if ApiToken.objects.filter(secret_hash=digest).exists():
            continue
        if StartUpKey.objects.filter(secret_hash=digest).exists():
            yield Line(Kind.CANNOT, subject, "was revoked here")
        elif missing := places.describe_missing(make_scope_document(new)):
            yield Line(Kind.CANNOT, subject, f"needs {missing}")
        else:
            store_token(new, caller=SYSTEM, secret=token.secret, digest=token.digest)
            # As for tokens of environment variables: one that is revoked here stays revoked.
            StartUpKey.objects.create(secret_hash=digest)
            yield Line(Kind.CREATE, subject, f"{new.kind}, {new.environment}, with its secret")


def read_token(token: SourceToken) -> NewToken | Malformed:
    """Reads what the token would be here, or why it cannot be taken."""
    kind = KINDS.get(token.type.lower())
    if kind is None or kind == ApiToken.Kind.ADMIN:
        return Malformed(f"is of type {token.type}: create one here for each script that needs it")
    if token.secure and token.digest is None:
        return Malformed("its secret is not readable there: create a new one, or move with --database")
    if token.expires_at is not None and _is_past(token.expires_at):
        return Malformed("has expired")
    document = json.dumps([token.model_dump(by_alias=True, exclude={"secure"})])
    return next(read_tokens("the source", document, kind)).new


def _is_past(moment: str) -> bool:
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return False  # read_tokens says what is wrong
    return parsed.tzinfo is not None and parsed < timezone.now()
