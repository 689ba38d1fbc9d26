"""/flags/: the active flags of all projects that the user may read."""

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from flagadmin.core.lists.pages import Listing, change_query
from groups.permissions import Permission
from projects.flags.lists.conditions import DIFFERS, FULL, OFF
from projects.flags.lists.queries import MINE, FlagScope, make_readable_scope
from projects.flags.lists.rows import may_toggle
from projects.projects.flag_list_page import FlagListPage

SAVED_FILTERS: Sequence[tuple[str, dict[str, str]]] = (
    ("All", {}),
    ("Mine", {"owner": MINE}),
    ("Stale", {"state": "stale"}),
    ("Off everywhere", {"rollout": OFF}),
    ("100 % for 30 days", {"rollout": FULL}),
    ("Differs", {"rollout": DIFFERS}),
    ("Never evaluated", {"seen": "never"}),
    ("Kill switches", {"type": "kill-switch"}),
)
BULK = {name: f"all-flags-{name}" for name in ("toggle", "tags", "stale", "archive")}


class AllFlagsPage(FlagListPage):
    template_name = "projects/all_flags.html"
    title = "All flags"
    csv_name = "flags"
    chips = ("project", "owner", *FlagListPage.chips)
    api_call = "GET /api/admin/search/features"

    def find_scope(self) -> FlagScope:
        return make_readable_scope(self.caller)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        may = {
            "edit": self.can_somewhere(Permission.UPDATE_FEATURE),
            "archive": self.can_somewhere(Permission.DELETE_FEATURE),
        }
        toggled = [
            name
            for name in self.scope.environments
            if any(may_toggle(self.caller, project, name) for project, _ in self.scope.projects)
        ]
        context, segments = self.list_context(listing), self.segments(listing)
        if any(is_chosen for _, _, _, is_chosen in segments[1:]):  # it says what its chip would
            context["set_chips"] = [chip for chip in context["set_chips"] if chip.label == "Project"]
        return super().get_context_data(
            **context,
            segments=segments,
            may=may,
            toggled=toggled,
            selectable=any(may.values()) or bool(toggled),
            bulk={name: reverse(page) for name, page in BULK.items()},
            **kwargs,
        )

    def can_somewhere(self, permission: Permission) -> bool:
        return any(self.caller.can(permission, project=project) for project, _ in self.scope.projects)

    def segments(self, listing: Listing) -> list[tuple[str, str, None, bool]]:
        """The saved filters. Choosing one keeps the search, the sorting and the project."""
        others = dict.fromkeys(
            field.name for field, _ in listing.filters if field.name not in ("q", "project")
        )
        chosen = {field.name: value for field, value in listing.filters if value and field.name in others}
        return [
            (label, change_query(self.request.GET, page=None, **{**others, **values}), None, chosen == values)
            for label, values in SAVED_FILTERS
        ]
