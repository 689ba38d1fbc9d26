"""/projects/ID/environments/: how the project's flags differ between two of its environments, and what to promote."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.utils.functional import cached_property

from flagadmin.core.lists.filter_chips import free_chips, set_chips
from flagadmin.core.lists.pages import Column, Filter, Listing, curl_for
from groups.console import ListPage
from groups.permissions import Permission
from projects.console import InProjectPage, api_path
from projects.environments.comparison import KINDS, read_last_changes
from projects.environments.comparison_queries import (
    ALL,
    DIFFERS,
    SAME,
    choose_environments,
    compare_flags,
    select_flags,
)
from projects.environments.comparison_rows import (
    ComparedFlag,
    collect_segment_ids,
    describe_side,
    find_last_change,
)
from projects.flags.lists.queries import list_environment_names
from projects.flags.lists.strategy_lines import Palette
from projects.models import Segment
from projects.projects.head import make_project_head

PROMOTE_PERMISSIONS = (
    Permission.CREATE_FEATURE_STRATEGY,
    Permission.UPDATE_FEATURE_STRATEGY,
    Permission.DELETE_FEATURE_STRATEGY,
    Permission.UPDATE_FEATURE_ENVIRONMENT,
    Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
)
"""A promotion needs those of what it changes."""


class ComparePage(InProjectPage, ListPage):
    template_name = "environments/compare.html"
    title = "Environments"
    csv_name = "{project_id}-environments"
    columns = (
        Column("flag", "Flag"),
        Column("from", "From"),
        Column("to", "To"),
        Column("differs", "Differs in"),
    )
    filters = (
        Filter("q", "Name, description or tag"),
        Filter("in", "Differs in", list(KINDS.items())),
        Filter("show", "Flags", [(ALL, "all"), (SAME, "the same")]),
    )

    def find(self) -> None:
        super().find()
        self.names = list_environment_names(self.project)
        source, target = self.request.GET.get("from", ""), self.request.GET.get("to", "")
        self.environments = choose_environments(self.names, source, target) if self.names else ("", "")

    def get_rows(self, values: dict[str, str]) -> list[ComparedFlag]:
        self.flags = compare_flags(self.project, self.environments, text=values["q"])
        return select_flags(self.flags, show=values["show"], kind=values["in"])

    def get_csv_lines(self, rows: Sequence[ComparedFlag]) -> Iterator[Sequence[Any]]:
        names = self.segment_names(rows)
        for flag in rows:
            sides = (describe_side(side, names) for side in flag.pair)
            yield (flag.name, *sides, ", ".join(flag.differences))

    def segment_names(self, flags: Iterable[ComparedFlag]) -> dict[int, str]:
        return Segment.objects.names(collect_segment_ids(flags))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing, places = kwargs["listing"], self.environments
        flags = list(listing.rows)
        changes = read_last_changes([flag.name for flag in flags], places)
        segments, palette = self.segment_names(flags), Palette()
        return super().get_context_data(
            **make_project_head(self.project, "environments-compare", caller=self.caller),
            source=places[0],
            target=places[1],
            swapped=listing.url(**{"from": places[1], "to": places[0]}),
            rows=[
                (flag, flag.cells(places, segments, palette), find_last_change(changes[flag.name], places))
                for flag in flags
            ],
            segments=list(self.segments(listing)),
            set_chips=[chip for chip in set_chips(listing) if chip.label != "Flags"],
            free_chips=free_chips(listing, ("in",)),
            kept=[pair for pair in listing.kept if pair[0] not in ("from", "to")],
            ticked=self.request.GET.getlist("name"),
            may_promote=self.may_promote,
            matching=self.matching(listing),
            compared=len(self.flags),
            **kwargs,
        )

    def segments(self, listing: Listing[ComparedFlag]) -> Iterator[tuple[str, str, int, bool]]:
        differing = sum(bool(flag.kinds) for flag in self.flags)
        show = self.request.GET.get("show", DIFFERS)
        counts = ((ALL, len(self.flags)), (DIFFERS, differing), (SAME, len(self.flags) - differing))
        for (key, count), label in zip(counts, ("All", "Differs", "Same"), strict=True):
            yield label, listing.url(show=key or None, **{"in": None, "name": None}), count, key == show

    @cached_property
    def may_promote(self) -> bool:
        scope = {"project": self.project.pk, "environment": self.environments[1]}
        return (
            self.environments[0] != self.environments[1]
            and self.project.archived_at is None
            and any(self.caller.can(permission, **scope) for permission in PROMOTE_PERMISSIONS)
        )

    def matching(self, listing: Listing[ComparedFlag]) -> str:
        """The query string that selects all flags of the list, "" if they are on one page."""
        return self.request.GET.urlencode() or "q=" if listing.page.has_other_pages() else ""

    def get_curl(self) -> str:
        if len(self.names) < 2:
            return ""
        names = [flag.name for flag in self.flags if flag.kinds][:3]
        body = {"from": self.environments[0], "to": self.environments[1], "features": names, "planOnly": True}
        return curl_for(self.request, "POST", f"{api_path(self.project.pk)}/environments/promote", body)
