"""What the pages with a list have in common: its columns and filters, its CSV file, and the sentences around it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.template import Template
from django.urls import reverse

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.columns import Column, make_table
from flagadmin.core.lists.pages import Filter, Listing

CSV_ROWS = 500  # completed together for a CSV file


class ListMixin:
    """A list, rendered by ``console/list.html`` or another template that includes ``includes/listing.html``."""

    request: HttpRequest
    caller: Any
    columns: Sequence[Column] = ()
    filters: Sequence[Filter] = ()
    default_sort = ""
    per_page = 50
    csv_name = ""  # may name parameters of the URL, like the title, from which it follows by default
    lead = ""  # a line below the title
    noun = "row,rows"  # what the list counts
    table_class = "stack"
    new = ("", "")  # the page that makes another row: the name of its URL, and the label of its button
    creates: Any = None  # the permission that this needs
    none_yet = ""  # what the page says without a row
    begin = ("", "")  # the link below that, like ``new``
    keeps_bar = True  # whether a list without rows shows its filters

    def find(self) -> None:
        """Loads the page's object."""

    def get_columns(self) -> Sequence[Column]:
        """The columns that the caller may see."""
        return [each for each in self.columns if each.permission is None or self.caller.can(each.permission)]

    def get_filters(self) -> Sequence[Filter]:
        return self.filters

    def get_rows(self, values: dict[str, str]) -> Any:
        """A queryset or list of the rows that the caller may see, narrowed by the filters that say not what they
        look into.
        """
        raise NotImplementedError

    def filter_rows(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        """The rows that match the filters that say what they look into."""
        for field in self.get_filters():
            rows = field.narrow(rows, values[field.name])
        return rows

    def complete(self, rows: list[Any]) -> Iterable[Any]:
        """The rows of a page, or a part of the CSV file, with what their cells need beside them."""
        return rows

    def get_listing(self) -> Listing:
        self.find()
        filters = self.get_filters()
        values = {field.name: field.value(self.request.GET) for field in filters}
        return Listing(
            self.request.GET,
            self.filter_rows(rows, values) if isinstance(rows := self.get_rows(values), QuerySet) else rows,
            columns=self.get_columns(),
            filters=filters,
            default_sort=self.default_sort,
            per_page=self.per_page,
        )

    def get_csv_lines(self, rows: Any) -> Iterable[Sequence[Any]]:
        columns = [column for column in self.get_columns() if column.key]
        for batch in _batch_rows(rows):
            yield from ([column.read_csv(row) for column in columns] for row in self.complete(batch))

    @property
    def table(self) -> Template:
        return make_table(tuple(self.get_columns()))

    def may_create(self) -> bool:
        """Whether the caller may open the page ``new``."""
        return self.creates is None or self.caller.can(self.creates)

    def get_beginning(self) -> tuple[str, str]:
        """The URL and label of the link that a list without rows shows; "" for none."""
        name, label = self.begin
        return (reverse(name), label) if name and (name != self.new[0] or self.may_create()) else ("", "")

    @property
    def is_searched(self) -> bool:
        """Whether filters may be why the list has no rows."""
        return any(self.request.GET.get(field.name) for field in self.get_filters())

    @property
    def nothing_found(self) -> str:
        what = "this search" if [field.name for field in self.get_filters()] == ["q"] else "these filters"
        return f"No {self.noun.partition(',')[2]} match {what}."


def _batch_rows(rows: "QuerySet[Any] | Iterable[Any]") -> Iterator[list[Any]]:
    left = stream_rows(rows, CSV_ROWS) if isinstance(rows, QuerySet) else iter(rows)
    while batch := list(islice(left, CSV_ROWS)):
        yield batch
