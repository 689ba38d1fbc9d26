"""The filters of a list as chips: a menu for each filter that can be set, and a link that clears a set one.

``templates/includes/filter_chips.html`` shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flagadmin.core.lists.pages import Filter, Listing


@dataclass(frozen=True, slots=True)
class SetChip:
    """A filter that is set, and the URL without it."""

    label: str
    value: str
    url: str


@dataclass(frozen=True, slots=True)
class FreeChip:
    """A filter that can be set: by the links (label, URL), or by typing if there are none.

    A chip of several filters has ``groups`` of links, each with the filter's label.
    """

    field: Filter
    links: Sequence[tuple[str, str]]
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]] = ()


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
    return [
        FreeChip(field, [] if field.is_typed else _make_links(field, listing, cleared))
        for field, value in listing.filters
        if field.name in names and not value and (field.options is None or field.options)
    ]


def join_chips(label: str, listing: Listing, names: Sequence[str]) -> FreeChip:
    """One chip for the filters of these names that are not set."""
    fields = [field for field, value in listing.filters if field.name in names and not value]
    return FreeChip(
        Filter("", label), (), [(field.label, _make_links(field, listing, ())) for field in fields]
    )


def _make_links(field: Filter, listing: Listing, cleared: Sequence[str]) -> list[tuple[str, str]]:
    others: dict[str, str | None] = dict.fromkeys(cleared)
    return [(text, listing.url(**others, **{field.name: key})) for key, text in field.options or ()]
