"""Saved views of the list of all flags. No event is recorded: only their owner sees them."""

import re
from urllib.parse import parse_qsl, urlencode

from django.db.models import QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, ValidationError, choices
from groups.access import Caller
from projects.flags.lists.queries import list_filters, make_readable_scope
from projects.models import FlagView

MAX_VIEWS = 20
MAX_NAME, MAX_QUERY = 60, 2_000  # characters
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def list_views(caller: Caller) -> QuerySet[FlagView]:
    return FlagView.objects.filter(user=caller.user) if caller.user else FlagView.objects.none()


@transactional
def save_view(name: str, query: str, *, caller: Caller) -> FlagView:
    """Saves a view, in place of one with this name. ``query``: ``owner=mine&sort=name``.

    Raises ValidationError, and InvalidOperation for a token that belongs to no user.
    """
    if caller.user is None:
        raise InvalidOperation("This token belongs to no user, so it has no views.")
    name, kept = name.strip(), read_view(query)
    known = {"sort", *(field.name for field in list_filters(make_readable_scope(caller)))}
    if not 0 < len(name) <= MAX_NAME:
        raise ValidationError.at("name", f"must have 1 to {MAX_NAME} characters, not {len(name):,}")
    if unknown := sorted(kept.keys() - known):
        raise ValidationError.at("query", f"has no parameter {unknown[0][:60]}. Available: {choices(known)}")
    if odd := [name for name, value in kept.items() if CONTROL.search(value)]:
        raise ValidationError.at("query", f"has a control character, such as %00, in {odd[0]}")
    if not kept or len(query) > MAX_QUERY:
        message = "has no filter" if not kept else f"has more than {MAX_QUERY:,} characters"
        raise ValidationError.at("query", message)
    views = list_views(caller)
    if not views.filter(name=name).exists() and views.count() >= MAX_VIEWS:
        raise ValidationError(f"You have {MAX_VIEWS} views, the maximum. Delete one first.")
    view, _ = FlagView.objects.update_or_create(
        user=caller.user, name=name, defaults={"query": urlencode(kept)}
    )
    return view


def read_view(query: str) -> dict[str, str]:
    """The values by parameter, without empty ones."""
    return {name: value for name, value in parse_qsl(query) if name not in ("page", "format", "as")}


@transactional
def delete_view(view_id: int, *, caller: Caller) -> str:
    """Returns its name. Raises NotFound."""
    view = get_or_404(list_views(caller), f"View {view_id} not found.", pk=view_id)
    view.delete()
    return view.name
