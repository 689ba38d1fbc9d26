"""The filters of a list of flags as chips: a menu of links for each filter, and a link that clears a set one."""

from collections.abc import Sequence
from dataclasses import dataclass

from flagadmin.console.lists import Filter, Listing


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that can be set. ``groups``: (heading, [(label, URL), …]); ``typed``: filters to type in."""

    label: str
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    typed: Sequence[Filter]


@dataclass(frozen=True, slots=True)
class SetChip:
    """A filter that is set, and the URL without it."""

    label: str
    value: str
    url: str


def set_chips(listing: Listing) -> list[SetChip]:
    return [
        SetChip(field.label, field.label_of(value), listing.url(**{field.name: None}))
        for field, value in listing.filters
        if value and field.options is not None
    ]


def filter_chips(listing: Listing) -> list[Chip]:
    """Type, tag and last evaluated, each unless it is set, and one chip for all that is about state."""
    free = {field.name: field for field, value in listing.filters if field.options and not value}
    state = [field for name, field in free.items() if name == "state" or name.startswith("in-")]
    single = [free[name] for name in ("type", "tag", "seen") if name in free]
    chips = [_chip(field.label, [field], listing) for field in single]
    return [*chips, _chip("State", state, listing)] if state else chips


def _chip(label: str, fields: Sequence[Filter], listing: Listing) -> Chip:
    groups = [
        (
            field.label if len(fields) > 1 else "",
            [(text, listing.url(**{field.name: key})) for key, text in field.options or ()],
        )
        for field in fields
        if not field.is_typed
    ]
    return Chip(label, groups, [field for field in fields if field.is_typed])
