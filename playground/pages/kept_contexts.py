"""A context too long for a URL is stored when its form is sent; the URL then names it by its digest."""

from hashlib import sha256
from urllib.parse import urlencode

from django.http import QueryDict

from groups.access import Caller
from playground.models import KeptContext
from playground.pages.query import KEPT, Asked

LONGEST_IN_URL = 2_000  # characters; what proxies and servers take beyond that differs
KEPT_FOR_EACH_USER = 20


def keep_if_long(asked: Asked, caller: Caller) -> None:
    """Stores a long context for the caller; their oldest ones beyond a fixed number go."""
    query = urlencode(asked.context_pairs())
    if len(query) <= LONGEST_IN_URL:
        return
    asked.kept = sha256(query.encode()).hexdigest()
    KeptContext.objects.update_or_create(user=caller.user, digest=asked.kept, defaults={"query": query})
    kept = KeptContext.objects.filter(user=caller.user).order_by("-kept_at", "-pk")
    newest = list(kept.values_list("pk", flat=True)[:KEPT_FOR_EACH_USER])
    kept.exclude(pk__in=newest).delete()


def with_kept(given: QueryDict, prefix: str = "") -> QueryDict:
    """A URL's parameters with the stored context, if they name one, written out."""
    digest = given.get(prefix + KEPT, "")
    stored = KeptContext.objects.filter(digest=digest).first() if digest else None
    if stored is None:
        return given
    full = given.copy()
    for name, values in QueryDict(stored.query).lists():
        full.setlist(prefix + name, values)
    return full
