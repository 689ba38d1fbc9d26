"""The SDK tokens of another installation, as tokens of this one."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.utils import timezone

from groups.models import ApiToken
from importer.moving.reading import SourceToken
from projects.tokens.actions import NewToken
from projects.tokens.start_up_values import KINDS, Malformed, read_tokens


def read_secrets(tokens: Iterable[SourceToken]) -> Iterator[tuple[str, str, NewToken | Malformed]]:
    """Each token's name, its secret, and what it would be here or why it cannot be taken."""
    for token in tokens:
        yield token.name, token.secret, _read(token)


def _read(token: SourceToken) -> NewToken | Malformed:
    kind = KINDS.get(token.type.lower())
    if kind is None or kind == ApiToken.Kind.ADMIN:
        return Malformed(f"is of type {token.type}: create one here for each script that needs it")
    if token.secure:
        return Malformed("its secret is not readable there: create a new one")
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
