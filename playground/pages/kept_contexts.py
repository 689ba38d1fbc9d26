"""Stores contexts that are too long for a URL, and finds them by the digest in the URL."""

from hashlib import sha256
from urllib.parse import urlencode

from django.http import QueryDict

from groups.access import Caller
from playground.models import KeptContext
from playground.pages.query import KEPT, PlaygroundQuery

MAX_LENGTH_IN_URL = 2_000  # characters; not all proxies and servers accept more
KEPT_FOR_EACH_USER = 20


def keep_if_long(query: PlaygroundQuery, caller: Caller) -> None:
    """Stores a long context for the caller, and deletes the oldest of theirs beyond KEPT_FOR_EACH_USER."""
    text = urlencode(query.context_pairs())
    if len(text) > MAX_LENGTH_IN_URL:
        query.kept = keep(text, caller)


def keep(text: str, caller: Caller) -> str:
    """Stores parameters of a URL for the caller. Returns their digest."""
    digest = sha256(text.encode()).hexdigest()
    KeptContext.objects.update_or_create(user=caller.user, digest=digest, defaults={"query": text})
    contexts = KeptContext.objects.filter(user=caller.user).order_by("-kept_at", "-pk")
    newest = list(contexts.values_list("pk", flat=True)[:KEPT_FOR_EACH_USER])
    contexts.exclude(pk__in=newest).delete()
    return digest


def restore_kept(parameters: QueryDict, prefix: str = "") -> QueryDict:
    """The URL's parameters. If they name a stored context, its fields are included."""
    digest = parameters.get(prefix + KEPT, "")
    stored = KeptContext.objects.filter(digest=digest).first() if digest else None
    if stored is None:
        return parameters
    full = parameters.copy()
    for name, values in QueryDict(stored.query).lists():
        full.setlist(prefix + name, values)
    return full
