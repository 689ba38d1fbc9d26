"""The base of the console's lists of flags: those of a project, and of all projects."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.filter_chips import FreeChip, free_chips, join_chips, set_chips
from flagadmin.core.lists.pages import Filter, Listing
from groups.console import ListPage
from projects.flags.lists.cells import read_flag_cells
from projects.flags.lists.queries import (
    MAX_MATCHING,
    FlagScope,
    annotate_for_sort,
    filter_flags,
    list_columns,
    list_filters,
    make_environment_key,
)
from projects.flags.lists.rows import make_flag_rows
from projects.models import FavoriteFlag

MAX_CELLS = 150  # on one page: under 300 kB with the longest names
MAX_SHORT_CELLS = 240  # if the names of the environments are short
SHORT_NAME = 30
CSV_FLAGS = 1000  # flags read together for a CSV file


def count_flags_of_page(environments: Sequence[str]) -> int:
    """Up to 50; fewer with many environments, but 8 as long as the page stays small."""
    number = max(1, len(environments))
    is_short = sum(map(len, environments)) <= SHORT_NAME * number
    few = min(8, (MAX_SHORT_CELLS if is_short else MAX_CELLS) // number)
    return min(50, max(MAX_CELLS // number, few, 1))


class FlagListPage(ListPage):
    """``scope`` is set by ``find_scope``. By default, the caller's favorites come first."""

    scope: FlagScope
    chips: Sequence[str] = ("type", "tag", "rollout", "seen")

    def find_scope(self) -> FlagScope:
        raise NotImplementedError

    def find(self) -> None:
        self.scope = self.find_scope()
        self.per_page = count_flags_of_page(self.scope.environments)
        self.columns = list_columns(self.scope.environments, with_project=bool(self.scope.projects))

    def get_filters(self) -> Sequence[Filter]:
        return list_filters(self.scope)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        flags = filter_flags(self.scope, values)
        sort = self.request.GET.get("sort", "")
        if sort.removeprefix("-") in {column.key for column in self.columns}:
            return annotate_for_sort(flags, self.scope.environments, sort)
        favorites = FavoriteFlag.objects.filter(user=self.caller.id)
        if not favorites.exists():  # the first flags by name are found without sorting all
            return flags.order_by("name")
        return flags.annotate(favorite=Exists(favorites.filter(flag=OuterRef("pk")))).order_by(
            "-favorite", "name"
        )

    def get_csv_lines(self, rows: Any) -> Iterable[Sequence[Any]]:
        flags = stream_rows(rows, CSV_FLAGS)
        while part := list(islice(flags, CSV_FLAGS)):
            for row in read_flag_cells(part):
                flag, owner = row.flag, row.flag.make_owner_document() if self.scope.projects else None
                texts = {cell.environment: cell.text for cell in row.cells}
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
        """Returns what templates/flags/list_filters.html and list_table.html need."""
        return {
            "rows": make_flag_rows(list(listing.rows), self.scope.environments, caller=self.caller),
            "places": self.scope.environments,
            "kept": [
                *listing.kept,
                *((field.name, value) for field, value in listing.filters if value and field.name != "q"),
            ],
            "search": self.request.GET.get("q", "").strip(),
            "set_chips": set_chips(listing),
            "free_chips": self.free_chips(listing),
            "stale_shown": self.request.GET.get("state") == "stale",
            "matching": self.matching(listing),
        }

    def free_chips(self, listing: Listing) -> Iterable[FreeChip]:
        chips = free_chips(listing, self.chips)
        state = join_chips("State", listing, ["state", *map(make_environment_key, self.scope.environments)])
        return [*chips, state] if state.groups else chips

    def matching(self, listing: Listing) -> str:
        """The query string that selects all flags of the list, "" if they are on one page or too many."""
        several = listing.page.has_other_pages() and listing.total <= MAX_MATCHING
        return self.request.GET.urlencode() or "q=" if several else ""
