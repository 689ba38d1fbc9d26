"""Template filters for lists and filters.

``{% load lists %}{{ names|cut|join:", " }}``
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from flagadmin.core.lists import pages

register = template.Library()


@register.filter
def cut(names: Sequence[str], limit: int = pages.MAX_NAMES) -> list[str]:
    """The first names, followed by "and 240 more"."""
    return pages.cut(names, limit)


@register.filter
def indented(document: Any) -> str:
    """A document as JSON with one member per line."""
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)


@register.filter
def get(mapping: Mapping[str, Any] | None, key: str) -> Any:
    """The value for a variable key; None without one, or without a mapping."""
    return mapping.get(key) if mapping else None


@register.filter
def search_text(listing: pages.Listing[Any]) -> str:
    return listing.query.get("q", "").strip()


@register.filter
def kept_filters(listing: pages.Listing[Any]) -> list[tuple[str, str]]:
    """The hidden inputs of the search form: all URL parameters that it does not change."""
    chosen = [(field.name, value) for field, value in listing.filters if value and field.name != "q"]
    return [*listing.kept, *chosen]


@register.filter
def set_chips(listing: pages.Listing[Any]) -> list[pages.SetChip]:
    return pages.set_chips(listing)


@register.filter
def free_chips(listing: pages.Listing[Any]) -> list[pages.FreeChip]:
    """A chip for each unset filter."""
    names = [field.name for field, _ in listing.filters if field.options is not None]
    return pages.free_chips(listing, names)
