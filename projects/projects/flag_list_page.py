"""The console's lists of flags: of one project (/projects/ID/), and of all readable projects (/flags/)."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse, reverse_lazy

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.pages import (
    Column,
    Filter,
    FreeChip,
    Listing,
    change_query,
    curl_for,
    free_chips,
    join_chips,
    set_chips,
)
from groups.console import ActionPage, ListPage, Permission
from projects.access import access_project
from projects.console import FLAGS, api_path, project_url
from projects.flags.insights.evaluations import read_last_evaluations
from projects.flags.lists.cells import make_flag_rows, may_toggle, read_flag_cells
from projects.flags.lists.conditions import DIFFERS, ROLLING
from projects.flags.lists.queries import (
    MAX_MATCHING,
    MINE,
    FlagScope,
    annotate_for_sort,
    filter_flags,
    list_columns,
    list_filters,
    make_environment_key,
    make_project_scope,
    make_readable_scope,
)
from projects.flags.lists.views import delete_view, list_views, read_view, save_view
from projects.history.queries import archived_by
from projects.models import FavoriteFlag, FlagView
from projects.projects.head import make_project_head

VIEWS: Sequence[tuple[str, dict[str, str]]] = (
    ("All", {}),
    ("Mine", {"owner": MINE}),
    ("Rolling out", {"rollout": ROLLING}),
    ("Changed today", {"changed": "1"}),
    ("Differs", {"rollout": DIFFERS}),
    ("Can go", {"state": "removable"}),
)
MORE = ("type", "rollout", "seen", "changed", "state")  # filters of one chip
BULK = ("toggle", "tags", "stale", "archive")
MAX_CELLS = 150  # on one page: under 300 kB with the longest names
MAX_SHORT_CELLS = 240  # if the names of the environments are short
SHORT_NAME = 30
MAX_PROVEN = 20  # on a page of flags that can go
MAX_CREATABLE = 20  # projects offered for a new flag
CSV_FLAGS = 1000  # flags read together for a CSV file


def count_flags_of_page(environments: Sequence[str]) -> int:
    """Up to 50; fewer with many environments, but at least 8 while the page stays small."""
    number = max(1, len(environments))
    is_short = sum(map(len, environments)) <= SHORT_NAME * number
    few = min(8, (MAX_SHORT_CELLS if is_short else MAX_CELLS) // number)
    return min(50, max(MAX_CELLS // number, few, 1))


class FlagListPage(ListPage):
    """``scope`` is set by ``find_scope``. By default, the caller's favorites come first."""

    scope: FlagScope
    chips: Sequence[str] = ("owner", "tag")

    def find_scope(self) -> FlagScope:
        raise NotImplementedError

    def find(self) -> None:
        self.scope = self.find_scope()
        self.can_go = self.request.GET.get("state") == "removable"
        self.per_page = MAX_PROVEN if self.can_go else count_flags_of_page(self.scope.environments)
        self.columns = list_columns(self.scope.environments, with_project=bool(self.scope.projects))

    def get_filters(self) -> Sequence[Filter]:
        return list_filters(self.scope)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        flags = filter_flags(self.scope, values)
        sort = self.request.GET.get("sort", "")
        if sort.removeprefix("-") in {column.key for column in self.columns}:
            return annotate_for_sort(flags, self.scope.environments, sort)
        favorites = FavoriteFlag.objects.filter(user=self.caller.id)
        if not favorites.exists():  # finds the first flags by name without sorting all
            return flags.order_by("name")
        return flags.annotate(favorite=Exists(favorites.filter(flag=OuterRef("pk")))).order_by(
            "-favorite", "name"
        )

    def get_csv_lines(self, rows: Any) -> Iterable[Sequence[Any]]:
        flags = stream_rows(rows, CSV_FLAGS)
        while part := list(islice(flags, CSV_FLAGS)):
            for row in read_flag_cells(part, measured=False):
                flag, owner = row.flag, row.flag.make_owner_document() if self.scope.projects else None
                texts = {cell.environment: cell.set_text for cell in row.cells}
                yield (
                    flag.name,
                    *([flag.project_id, owner["name"] if owner else ""] if self.scope.projects else []),
                    flag.type,
                    *(texts.get(name, "") for name in self.scope.environments),
                    row.last_evaluated,
                    "yes" if flag.stale else "no",
                    flag.created_at,
                )

    def list_context(self, listing: Listing) -> dict[str, Any]:
        """The variables for templates/flags/list.html."""
        toggled = [
            name
            for name in self.scope.environments
            if any(may_toggle(self.caller, project, name) for project in self.list_projects())
        ]
        may = {
            "edit": self.can_somewhere(Permission.UPDATE_FEATURE),
            "archive": self.can_somewhere(Permission.DELETE_FEATURE),
        }
        views = self.views(listing)
        chips = set_chips(listing)
        own, now = list(self.own_views(listing)), read_view(self.request.GET.urlencode())
        chosen = next((view for view, kept in own if kept == now), None)
        is_new = "show" not in now and not any(now == values for _, values in VIEWS)
        if any(is_chosen for _, _, _, is_chosen in views[1:]):  # the view already shows it
            chips = [chip for chip in chips if chip.label == "Project"]
        return {
            "may": may,
            "toggled": toggled,
            "selectable": any(may.values()) or bool(toggled),
            "bulk": self.bulk(),
            "segments": [
                *((*view[:3], view[3] and not chosen) for view in views),
                *((view.name, f"?{view.query}", None, view == chosen) for view, _ in own),
            ],
            "own_view": chosen,
            "query": urlencode(now) if is_new else "",
            "can_go": self.can_go,
            "place_keys": [] if self.can_go else list(map(make_environment_key, self.scope.environments)),
            "rows": make_flag_rows(list(listing.rows), self.scope.environments, caller=self.caller),
            "places": self.scope.environments,
            "kept": [
                *listing.kept,
                *((field.name, value) for field, value in listing.filters if value and field.name != "q"),
            ],
            "search": self.request.GET.get("q", "").strip(),
            "set_chips": chips,
            "free_chips": self.free_chips(listing),
            "stale_shown": self.request.GET.get("state") == "stale",
            "matching": self.matching(listing),
        }

    def free_chips(self, listing: Listing) -> Iterable[FreeChip]:
        joined = {"tag", *MORE, *map(make_environment_key, self.scope.environments)}.difference(self.chips)
        typed = {field.name for field, _ in listing.filters if field.name in joined and field.is_typed}
        chips = free_chips(listing, [*self.chips, *typed])
        more = join_chips("More", listing, [*joined - typed])
        return [*chips, more] if more.groups else chips

    def list_projects(self) -> Sequence[str]:
        """The ids of the projects of the list."""
        return [project for project, _ in self.scope.projects]

    def can_somewhere(self, permission: Permission) -> bool:
        return any(self.caller.can(permission, project=project) for project in self.list_projects())

    def bulk(self) -> dict[str, str]:
        """The URLs of the actions on selected flags."""
        return {name: reverse(f"all-flags-{name}") for name in BULK}

    def views(self, listing: Listing) -> list[tuple[str, str, int | None, bool]]:
        """Choosing one keeps the search, the sorting and the project."""
        others = dict.fromkeys(
            ["show", *(field.name for field, _ in listing.filters if field.name not in ("q", "project"))]
        )
        chosen = {field.name: value for field, value in listing.filters if value and field.name in others}
        return [
            (label, change_query(self.request.GET, page=None, **{**others, **values}), None, chosen == values)
            for label, values in VIEWS
        ]

    def own_views(self, listing: Listing) -> Iterator[tuple[FlagView, dict[str, str]]]:
        """The caller's saved views with their values, without those that this list could not narrow."""
        known = {"sort", *(field.name for field, _ in listing.filters)}
        for view in list_views(self.caller):
            kept = read_view(view.query)
            if kept.keys() <= known:
                yield view, kept

    def matching(self, listing: Listing) -> str:
        """The query string that selects all flags of the list; "" if they are on one page or too many."""
        several = listing.page.has_other_pages() and listing.total <= MAX_MATCHING
        return self.request.GET.urlencode() or "q=" if several else ""


ARCHIVED_COLUMNS = (
    Column("name", "Flag", by=("name",)),
    Column("type", "Type", by=("type", "name")),
    Column("archived", "Archived", by=("archived_at", "name")),
    Column("by", "By"),
    Column("seen", "Last evaluated", by=("last_evaluated", "name")),
)
ARCHIVED_FILTERS = ("q", "type", "tag")  # filters that also apply to archived flags


def list_archived_lines(rows: Any) -> Iterator[Sequence[Any]]:
    flags = stream_rows(rows, CSV_FLAGS)
    while part := list(islice(flags, CSV_FLAGS)):
        by, seen = archived_by([flag.name for flag in part]), read_last_evaluations(flag.pk for flag in part)
        for flag in part:
            last = max(seen[flag.pk].values(), default=None)
            yield flag.name, flag.type, flag.archived_at, by.get(flag.name, ""), last


class ProjectPage(FlagListPage):
    title = "{page.project.name}"
    chips = ("owner",)
    template_name = "projects/project.html"
    csv_name = "{project_id}-flags"
    parents = (FLAGS,)

    def setup(self, *args: Any, **kwargs: Any) -> None:
        super().setup(*args, **kwargs)
        self.archived = self.request.GET.get("show") == "archived"

    def find_scope(self) -> FlagScope:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        return make_project_scope(self.project, archived=self.archived, caller=self.caller)

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
        self.project_head = make_project_head(self.project, "project", caller=self.caller)
        context = {**self.list_context(kwargs["listing"]), **self.project_head}
        if self.archived:
            context["archived_by"] = archived_by([row.flag.name for row in context["rows"]])
        return super().get_context_data(**context, archived=self.archived, **kwargs)

    def list_projects(self) -> Sequence[str]:
        return [self.project.pk]

    def bulk(self) -> dict[str, str]:
        return {name: project_url(self.project.pk, f"flags-{name}") for name in BULK}

    def views(self, listing: Listing) -> list[tuple[str, str, int | None, bool]]:
        """Also the archived flags. The first and the last one say how many there are."""
        counts = self.project_head["counts"]
        (label, url, _, is_all), *others = super().views(listing)
        own = dict.fromkeys(key for key in self.request.GET if key not in ARCHIVED_FILTERS)
        archived = listing.url(**{**own, "show": "archived"})
        return [
            (label, url, counts["featureCount"], is_all and not self.archived),
            *others,
            ("Archived", archived, counts["archivedFeatureCount"], self.archived),
        ]

    def get_curl(self) -> str:
        if self.archived:
            return curl_for(self.request, "GET", f"/api/admin/archive/features/{quote(self.project.pk, '')}")
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/features")


class AllFlagsPage(FlagListPage):
    template_name = "projects/all_flags.html"
    title = "Flags"
    csv_name = "flags"
    chips = ("project", *FlagListPage.chips)
    api_call = "GET /api/admin/search/features"

    def find_scope(self) -> FlagScope:
        return make_readable_scope(self.caller)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        creatable = [
            project
            for project in self.scope.projects
            if self.caller.can(Permission.CREATE_FEATURE, project=project[0])
        ]
        context = self.list_context(kwargs["listing"])
        return super().get_context_data(**context, across=True, creatable=creatable[:MAX_CREATABLE], **kwargs)


class SaveView(ActionPage):
    """Saves the list of all flags as it is filtered and sorted, and shows it."""

    success_url = reverse_lazy("all-flags")

    def act(self) -> str:
        form = self.request.POST
        view = save_view(form.get("name", ""), form.get("query", ""), caller=self.caller)
        return f"Saved view {view.name}."


class DeleteView(ActionPage):
    success_url = reverse_lazy("all-flags")

    def act(self) -> str:
        return f"Deleted view {delete_view(self.kwargs['view_id'], caller=self.caller)}."
