"""/search/: one search over everything that the caller may read, as a page and for the dialog on every page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase

from flagadmin.console.search.commands import (
    find_similar_commands,
    find_similar_flags,
    make_action_group,
    make_operation_group,
    make_page_group,
)
from flagadmin.console.search.kinds import KINDS, MAX_HITS, Group, Kind
from flagadmin.core.db.lookups import find_similar_rows, split_words
from groups.console import Caller, ConsolePage, Listing, read_current_page
from projects.flags.lists.queries import MAX_RECENT, list_recent_names
from projects.models import FavoriteFlag, Flag, Project

ONLY_ACTIONS = ">"
MAX_FAVORITES = 20  # favorites that are read; MAX_HITS of them are shown


class SearchPage(ConsolePage):
    """``?q=`` searches; ``&kind=flags`` shows all hits of that kind, in pages."""

    title = "Search"

    def get_template_names(self) -> list[str]:
        return ["console/search_hits.html" if self.is_dialog else "console/search.html"]

    @property
    def is_dialog(self) -> bool:
        return "HX-Request" in self.request.headers

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        text = request.GET.get("q", "").strip()
        return self.render_to_response(self.get_context_data(q=text, **self.search(text)))

    def search(self, text: str) -> dict[str, Any]:
        words = split_words(text.removeprefix(ONLY_ACTIONS))
        kind = next((kind for kind in KINDS if kind.key == self.request.GET.get("kind")), None)
        if kind and words and not text.startswith(ONLY_ACTIONS):
            listing: Listing[Any] = Listing(self.request.GET, kind.search(self.caller, words), columns=())
            group = kind.group_of(listing.rows, listing.total, self.caller, words)
            return {"listing": listing, "groups": [group] if group.hits else [], "only": kind}
        only_actions = text.startswith(ONLY_ACTIONS)
        return {"groups": self.groups(words, only_actions=only_actions), "back": self.find_way_back()}

    def groups(self, words: tuple[str, ...], *, only_actions: bool) -> list[Group]:
        """The groups with the best hits first. One query for each kind, and two more for misspelled words."""
        groups: list[Group | None] = []
        flags: list[Any] = [] if words else self.known_flags()
        if words and not only_actions:
            flags = list(KINDS[0].search(self.caller, words)[:MAX_HITS])
            groups += [KINDS[0].group_of(flags, flags[0].match_count, self.caller, words)] if flags else []
            groups += [kind.group(self.caller, words) for kind in KINDS[1:]]
        elif not words and not only_actions:
            groups += self.known_groups(flags)
        if not only_actions:
            groups.append(make_page_group(self.caller, words))
        groups.append(make_action_group(self.caller, words, flags[:2], alone=only_actions))
        if not any(groups) and words:
            groups += find_similar_groups(self.caller, words)
        if not only_actions:
            groups.append(make_operation_group(words))
        return sorted(filter(None, groups), key=lambda group: group.rank)

    def known_flags(self) -> list[Flag]:
        """The flags that the caller viewed last, then their favorites. One query."""
        recent = list_recent_names(self.request.session)
        favorites = FavoriteFlag.objects.filter(user=self.caller.id).values("flag")
        flags = (
            Flag.objects.active().readable_by(self.caller).filter(Q(name__in=recent) | Q(pk__in=favorites))
        )
        known = list(flags.select_related("project").order_by("name")[: MAX_RECENT + MAX_FAVORITES])
        position = {name: at for at, name in enumerate(recent)}
        return sorted(known, key=lambda flag: position.get(flag.name, len(position)))

    def known_groups(self, flags: Sequence[Flag]) -> list[Group]:
        """The groups "Recent" and "Favorites" of ``known_flags``, each flag once."""
        recent = set(list_recent_names(self.request.session))
        parts = [
            ("recent", "Recent", [flag for flag in flags if flag.name in recent]),
            ("favorites", "Favorites", [flag for flag in flags if flag.name not in recent][:MAX_HITS]),
        ]
        return [
            replace(KINDS[0].group_of(rows, len(rows), self.caller, ()), key=key, label=label)
            for key, label, rows in parts
            if rows
        ]

    def find_way_back(self) -> str:
        """Finds the page to return to after switching the theme."""
        return read_current_page(self.request) if self.is_dialog else self.request.get_full_path()


def find_similar_groups(caller: Caller, words: Sequence[str]) -> list[Group | None]:
    """Similarly spelled flags, projects and commands. Two queries, plus those for the states of the results."""
    rows_by_kind: list[tuple[Kind, list[Any]]] = [
        (KINDS[0], find_similar_flags(caller, words, MAX_HITS)),
        (KINDS[1], find_similar_rows(Project.objects.active().readable_by(caller), words, "name", MAX_HITS)),
    ]
    groups: list[Group | None] = [
        replace(kind.group_of(rows, len(rows), caller, ()), label=f"{kind.label} with a similar name")
        for kind, rows in rows_by_kind
        if rows
    ]
    return [*groups, find_similar_commands(caller, words)]
