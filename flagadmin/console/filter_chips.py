"""The filters of a list as chips: a menu for each filter that can be set, and a link that clears a set one.

``templates/includes/filter_chips.html`` shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flagadmin.console.lists import Filter, Listing


@dataclass(frozen=True, slots=True)
class SetChip:
    """A filter that is set, and the URL without it."""

    label: str
    value: str
    url: str


@dataclass(frozen=True, slots=True)
class FreeChip:
    """A filter that can be set: by the links (label, URL), or by typing if there are none."""

    field: Filter
    links: Sequence[tuple[str, str]]


def set_chips(listing: Listing, *, cleared: Sequence[str] = ()) -> list[SetChip]:
    """The set filters, except for the text search. ``cleared``: parameters that go with any of them."""
    others: dict[str, str | None] = dict.fromkeys(cleared)
    return [
        SetChip(field.label, field.label_of(value), listing.url(**others, **{field.name: None}))
        for field, value in listing.filters
        if value and field.name != "q"
    ]


def free_chips(listing: Listing, names: Sequence[str], *, cleared: Sequence[str] = ()) -> list[FreeChip]:
    """The filters of these names that are not set."""
    others: dict[str, str | None] = dict.fromkeys(cleared)
    return [
        FreeChip(
            field,
            []
            if field.is_typed
            else [(text, listing.url(**others, **{field.name: key})) for key, text in field.options or ()],
        )
        for field, value in listing.filters
        if field.name in names and not value and (field.options is None or field.options)
    ]
