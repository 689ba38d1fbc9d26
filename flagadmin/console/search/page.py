"""/search/: one search over everything that the caller may read, as a page and for the dialog on every page."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase

from flagadmin.console.search.commands import action_group, operation_group, page_group
from flagadmin.console.search.hits import Group
from flagadmin.console.search.kinds import KINDS, MAX_HITS
from flagadmin.core.db.matching import words_of
from flagadmin.core.lists.pages import Listing
from groups.console import ConsolePage, read_current_page

ONLY_ACTIONS = ">"


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
        return self.render_to_response(self.get_context_data(q=text, **self.found(text)))

    def found(self, text: str) -> dict[str, Any]:
        words = words_of(text.removeprefix(ONLY_ACTIONS))
        kind = next((kind for kind in KINDS if kind.key == self.request.GET.get("kind")), None)
        if kind and words and not text.startswith(ONLY_ACTIONS):
            listing: Listing[Any] = Listing(self.request.GET, kind.search(self.caller, words), columns=())
            group = kind.group_of(listing.rows, listing.total, self.caller, words)
            return {"listing": listing, "groups": [group] if group.hits else [], "only": kind}
        only_actions = text.startswith(ONLY_ACTIONS)
        return {"groups": self.groups(words, only_actions=only_actions), "back": self.back()}

    def groups(self, words: tuple[str, ...], *, only_actions: bool) -> list[Group]:
        """The groups with the best hits first. One query for each kind."""
        groups_found: list[Group | None] = []
        flags = []
        if words and not only_actions:
            flags = list(KINDS[0].search(self.caller, words)[:MAX_HITS])
            groups_found += [KINDS[0].group_of(flags, flags[0].found, self.caller, words)] if flags else []
            groups_found += [kind.group(self.caller, words) for kind in KINDS[1:]]
        if not only_actions:
            groups_found.append(page_group(self.caller, words))
            groups_found.append(operation_group(words))
        groups_found.append(action_group(self.caller, words, flags[:2], alone=only_actions))
        return sorted(filter(None, groups_found), key=lambda group: group.rank)

    def back(self) -> str:
        """Where switching the theme returns to."""
        return read_current_page(self.request) if self.is_dialog else self.request.get_full_path()
