"""/projects/ID/: the active or archived flags of a project, with a cell and a toggle for each environment."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.pages import Column, Filter, Listing, curl_for
from projects.access import access_project
from projects.console import PROJECTS, api_path, project_url
from projects.flags.insights.evaluations import read_last_evaluations
from projects.flags.lists.queries import FlagScope, make_project_scope
from projects.flags.lists.rows import may_toggle
from projects.history.queries import archived_by
from projects.projects.flag_list_page import CSV_FLAGS, FlagListPage
from projects.projects.head import make_project_head

ARCHIVED_COLUMNS = (
    Column("name", "Flag", by=("name",)),
    Column("type", "Type", by=("type", "name")),
    Column("archived", "Archived", by=("archived_at", "name")),
    Column("by", "By"),
    Column("seen", "Last evaluated", by=("last_evaluated", "name")),
)
ARCHIVED_FILTERS = ("q", "type", "tag")  # the filters that archived flags have too
BULK = {"toggle": "flags-toggle", "tags": "flags-tags", "stale": "flags-stale", "archive": "flags-archive"}


def list_archived_lines(rows: Any) -> Iterator[Sequence[Any]]:
    flags = stream_rows(rows, CSV_FLAGS)
    while part := list(islice(flags, CSV_FLAGS)):
        by, seen = archived_by([flag.name for flag in part]), read_last_evaluations(flag.pk for flag in part)
        for flag in part:
            last = max(seen[flag.pk].values(), default=None)
            yield flag.name, flag.type, flag.archived_at, by.get(flag.name, ""), last


class ProjectPage(FlagListPage):
    template_name = "projects/project.html"
    csv_name = "{project_id}-flags"
    parents = (PROJECTS,)

    def setup(self, *args: Any, **kwargs: Any) -> None:
        super().setup(*args, **kwargs)
        self.archived = self.request.GET.get("show") == "archived"

    def find_scope(self) -> FlagScope:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        return make_project_scope(self.project, archived=self.archived)

    def get_title(self) -> str:
        return self.project.name

    def get_filters(self) -> Sequence[Filter]:
        filters = super().get_filters()
        if not self.archived:
            return filters
        self.columns = ARCHIVED_COLUMNS
        return [field for field in filters if field.name in ARCHIVED_FILTERS]

    def get_csv_lines(self, rows: Any) -> Iterable[Sequence[Any]]:
        if self.archived:
            return list_archived_lines(rows)
        return super().get_csv_lines(rows)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        head = make_project_head(self.project, "project", caller=self.caller)
        toggled = [name for name in self.scope.environments if may_toggle(self.caller, self.project.pk, name)]
        may = head["may"]
        context = self.list_context(listing)
        if self.archived:
            context["archived_by"] = archived_by([row.flag.name for row in context["rows"]])
        context["set_chips"] = [chip for chip in context["set_chips"] if chip.value != "Stale"]
        return super().get_context_data(
            **head,
            **context,
            archived=self.archived,
            segments=self.segments(listing, head["counts"]),
            toggled=toggled,
            selectable=may["edit"] or may["archive"] or bool(toggled),
            bulk={name: project_url(self.project.pk, page) for name, page in BULK.items()},
            **kwargs,
        )

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

    def get_curl(self) -> str:
        if self.archived:
            return curl_for(self.request, "GET", f"/api/admin/archive/features/{quote(self.project.pk, '')}")
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/features")
