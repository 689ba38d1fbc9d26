"""/projects/ID/: the active or archived flags of a project, with a cell and a toggle for each environment."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from django.db.models import Exists, OuterRef, QuerySet

from flagadmin.core.db.transactions import streamed
from flagadmin.core.lists.filter_chips import FreeChip, free_chips, joint_chip, set_chips
from flagadmin.core.lists.pages import Column, Filter, Listing, curl_for
from groups.console import Crumbs, ListPage
from projects.access import access_project
from projects.console import PROJECTS, api_path
from projects.flags.flag_cells import flag_cells
from projects.flags.flag_rows import flag_rows, may_toggle
from projects.flags.list_queries import (
    MAX_MATCHING,
    environment_names,
    filter_flags,
    in_environment,
    list_columns,
    list_filters,
    sortable,
)
from projects.models import FavoriteFlag, Flag
from projects.projects.head import project_head

ARCHIVED_COLUMNS = (
    Column("name", "Flag", by=("name",)),
    Column("type", "Type", by=("type", "name")),
    Column("archived", "Archived", by=("archived_at", "name")),
)
ARCHIVED_FILTERS = ("q", "type", "tag")  # the filters that archived flags have too
MAX_CELLS = 150  # on one page: under 300 kB with the longest names
MAX_SHORT_CELLS = 240  # if the names of the environments are short
SHORT_NAME = 30
CSV_FLAGS = 1000  # flags read together for a CSV file


def flags_on_a_page(environments: Sequence[str]) -> int:
    """Up to 50; fewer with many environments, but 8 as long as the page stays small."""
    number = max(1, len(environments))
    is_short = sum(map(len, environments)) <= SHORT_NAME * number
    few = min(8, (MAX_SHORT_CELLS if is_short else MAX_CELLS) // number)
    return min(50, max(MAX_CELLS // number, few, 1))


class ProjectPage(ListPage):
    template_name = "projects/project.html"

    def setup(self, *args: Any, **kwargs: Any) -> None:
        super().setup(*args, **kwargs)
        self.archived = self.request.GET.get("show") == "archived"

    def listing(self) -> Listing:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.environments = environment_names(self.project)
        self.csv_name = f"{self.project.pk}-flags"
        self.per_page = flags_on_a_page(self.environments)
        self.columns = ARCHIVED_COLUMNS if self.archived else list_columns(self.environments)
        return super().listing()

    def get_title(self) -> str:
        return self.project.name

    def crumbs(self) -> Crumbs:
        return (PROJECTS,)

    def get_filters(self) -> Sequence[Filter]:
        filters = list_filters(self.project, self.environments)
        return [field for field in filters if not self.archived or field.name in ARCHIVED_FILTERS]

    def rows(self, values: dict[str, str]) -> QuerySet[Any]:
        flags_here = Flag.objects.archived(self.archived).filter(project=self.project)
        flags = filter_flags(flags_here, values, self.environments)
        sort = self.request.GET.get("sort", "")
        if sort.removeprefix("-") in {column.key for column in self.columns}:
            return sortable(flags, self.environments, sort)
        mine = FavoriteFlag.objects.filter(user=self.caller.id, flag=OuterRef("pk"))
        return flags.annotate(favorite=Exists(mine)).order_by("-favorite", "name")

    def csv_lines(self, rows: Any) -> Iterable[Sequence[Any]]:
        if self.archived:
            return ((flag.name, flag.type, flag.archived_at) for flag in rows)
        return self._active_lines(rows)

    def _active_lines(self, rows: Any) -> Iterator[Sequence[Any]]:
        flags = streamed(rows, CSV_FLAGS)
        while part := list(islice(flags, CSV_FLAGS)):
            for row in flag_cells(part):
                flag, texts = row.flag, [cell.text for cell in row.cells]
                stale = "yes" if flag.stale else "no"
                yield (flag.name, flag.type, *texts, row.last_evaluated, stale, flag.created_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        head = project_head(self.project, "project", caller=self.caller)
        rows = flag_rows(list(listing.rows), caller=self.caller)
        toggled = [name for name in self.environments if may_toggle(self.caller, self.project.pk, name)]
        may = head["may"]
        return super().get_context_data(
            **head,
            archived=self.archived,
            rows=rows,
            places=[cell for cell, _ in rows[0].cells] if rows else (),
            segments=self.segments(listing, head["counts"]),
            stale_shown=self.request.GET.get("state") == "stale",
            kept=[
                *listing.kept,
                *((field.name, value) for field, value in listing.filters if value and field.name != "q"),
            ],
            search=self.request.GET.get("q", "").strip(),
            set_chips=[chip for chip in set_chips(listing) if chip.value != "Stale"],
            free_chips=self.free_chips(listing),
            toggled=toggled,
            selectable=may["edit"] or may["archive"] or bool(toggled),
            matching=self.matching(listing),
            **kwargs,
        )

    def free_chips(self, listing: Listing) -> list[FreeChip]:
        chips = free_chips(listing, ("type", "tag", "seen"))
        state = joint_chip("State", listing, ["state", *map(in_environment, self.environments)])
        return [*chips, state] if state.groups else chips

    def segments(self, listing: Listing, counts: dict[str, int]) -> list[tuple[str, str, int, bool]]:
        stale = not self.archived and self.request.GET.get("state") == "stale"
        own = dict.fromkeys(key for key in self.request.GET if key not in ARCHIVED_FILTERS)
        return [
            (
                "Active",
                listing.url(show=None, state=None),
                counts["featureCount"],
                not self.archived and not stale,
            ),
            ("Stale", listing.url(show=None, state="stale"), counts["staleFeatureCount"], stale),
            (
                "Archived",
                listing.url(**{**own, "show": "archived"}),
                counts["archivedFeatureCount"],
                self.archived,
            ),
        ]

    def matching(self, listing: Listing) -> str:
        """The query string that selects all flags of the list, "" if they are on one page or too many."""
        several = listing.page.has_other_pages() and listing.total <= MAX_MATCHING
        return self.request.GET.urlencode() or "q=" if several else ""

    def curl(self) -> str:
        if self.archived:
            return curl_for(self.request, "GET", f"/api/admin/archive/features/{quote(self.project.pk, '')}")
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/features")
