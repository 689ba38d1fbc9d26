"""Search results: hits with the match marked, grouped by kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html_join
from django.utils.safestring import SafeString


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``place`` says where it is; ``theme`` makes it a button that switches to that theme.

    ``state`` says how it is now: of a flag, "50 %" in production, and ``is_on`` whether it is on there.
    """

    name: SafeString
    url: str
    place: str = ""
    theme: str = ""
    state: str = ""
    is_on: bool | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The first hits of one kind, and how many there are. ``rank`` is that of the best one."""

    key: str
    label: str
    icon: str
    hits: Sequence[Hit]
    total: int
    rank: int
    is_cut: bool = False  # so many match that only some were ranked

    @property
    def has_more(self) -> bool:
        return self.total > len(self.hits)


def mark_words(name: str, words: Sequence[str]) -> SafeString:
    """The name with every occurrence of a word in ``<mark>``, ignoring case."""
    longest_first = sorted(words, key=len, reverse=True)
    parts = (
        re.split(f"({'|'.join(map(re.escape, longest_first))})", name, flags=re.IGNORECASE)
        if words
        else [name]
    )
    return format_html_join("", "{}{}{}", (_wrap(part, odd % 2) for odd, part in enumerate(parts)))


def _wrap(part: str, is_match: int) -> tuple[str, str, str]:
    return (SafeString("<mark>"), part, SafeString("</mark>")) if is_match else ("", part, "")
