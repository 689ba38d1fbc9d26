"""What pages are made of, below the apps that have them: lists, CSV, curl commands, problems in forms.

How a page is written
---------------------
1. The view, in ``APP/SUBJECT/pages.py``, with a route and its name in ``APP/console_urls.py``. It derives from one of
   ``groups.console``:

   * ``ConsolePage``: any page. Set ``template_name`` and ``title`` and fill ``get_context_data``. ``self.caller`` is
     the person. Raise what the API raises (NotFound, NoAccess, …): it is answered with an error page.
   * ``ListPage``: a table. Declare ``columns`` and ``get_filters``; ``rows(values)`` returns a queryset or a list
     narrowed by the filters; ``csv_cells(row)`` one CSV line. Filters, sorting and page are in the URL.
   * ``FormPage``: a form. ``find()`` loads and authorises, ``submit(form) -> url`` calls the action; its errors are
     shown beside the fields. ``EditPage`` also detects that somebody else saved in between.
   * ``ActionPage``: a button. ``ConfirmPage``: a button that asks first, for whatever cannot be undone.

   All of them: ``crumbs()`` returns the ``[(label, url), …]`` of the pages above, ``curl()`` the API call of this page
   (use :func:`curl_for`). The navigation follows from the URL (``flagadmin/console/navigation.py``).
2. The template, in ``templates/SUBJECT/NAME.html``: ``{% extends "base.html" %}``, ``{% block content %}``; also
   ``lead`` (a line below the title) and ``actions`` (buttons right of the title). Under 60 lines, no queries, no logic,
   links by ``{% url %}``. Parts that several subjects include are in ``templates/includes/``; the first line of each
   says what it takes.
   Classes of ``app.css`` worth knowing: ``card``, ``cards``, ``row`` (things side by side), ``muted``, ``mono``,
   ``small``, ``pill on|off|unknown|info|warn``, ``note warn|error|success``, ``num`` (right-aligned cell), ``danger``,
   ``diff`` with ``<del>``/``<ins>``, ``stack`` (a table that becomes a list on narrow screens).
3. No ``style=`` and no ``on…=`` attributes, no inline script: the content security policy forbids them. Behaviour is
   attached by data attributes, see ``static/flagadmin/app.js``. Everything must work without JavaScript.
4. Tests: a view test in ``tests/APP/SUBJECT/test_pages.py``, and its URL in ``tests/browser/pages.py``, which checks it
   for accessibility in both themes, requests to other hosts and policy reports.
"""

import csv
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar

import orjson
from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet
from django.forms import BaseForm
from django.http import HttpRequest, QueryDict, StreamingHttpResponse

from flagadmin.errors import AppError, ValidationError, choices

Row = TypeVar("Row")
OFFERED = 200  # choices that a page offers at once; the others are typed
SHOWN = 100  # names in a sentence or a list that nobody pages through
MOST_IN_CURL = 10_000  # characters of a body that a command brings itself


# Lists ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list. ``key`` stands for it in the URL; ``by`` names the fields it is sorted by.

    Rows of a queryset are sorted by the database, rows of a list by their attributes of these names;
    a column without ``by`` cannot be sorted.
    """

    key: str
    label: str
    by: tuple[str, ...] = ()
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """A field of the filter form. With ``options`` [(value, label)] a list to choose from, else a text."""

    name: str
    label: str
    options: Sequence[tuple[str, str]] | None = None
    any_label: str = "all"

    def value(self, given: QueryDict) -> str:
        """What the URL asks for, "" for everything. Raises ValidationError naming the options."""
        value = given.get(self.name, "").strip()
        if self.is_typed and self.options is not None:
            value = next((key for key, label in self.options if label == value), value)
        if value and self.options is not None and value not in dict(self.options):
            names = choices(key for key, _ in self.options)
            raise ValidationError.at(self.name, f"There is no {value}. Available: {names}.")
        return value

    @property
    def is_typed(self) -> bool:
        """Whether there are too many options for a list to choose from."""
        return self.options is None or len(self.options) > OFFERED

    @property
    def offered(self) -> Sequence[tuple[str, str]]:
        return (self.options or ())[:OFFERED]

    def label_of(self, value: str) -> str:
        return dict(self.options or ()).get(value, value)


@dataclass(frozen=True, slots=True)
class Header:
    """A column's head: where a click on it leads, and how the list is sorted by it now."""

    column: Column
    href: str
    direction: str  # "ascending", "descending" or ""


class Listing(Generic[Row]):
    """One list as the URL asks for it: sorted, one page of it, with the links that change either."""

    def __init__(
        self,
        given: QueryDict,
        rows: "QuerySet[Any] | Sequence[Row]",
        *,
        columns: Sequence[Column],
        filters: Sequence[Filter] = (),
        default_sort: str = "",
        per_page: int = 50,
        page_name: str = "page",
    ) -> None:
        self.given = given
        self.page_name = page_name
        self.columns = columns
        self.filters = [(field, field.value(given)) for field in filters]
        self.sort = self._known_sort(given.get("sort", "")) or default_sort
        self.all_rows = sorted_rows(rows, self._sorting())
        self.per_page = per_page

    def _known_sort(self, asked: str) -> str:
        known = {column.key for column in self.columns if column.by}
        return asked if asked.removeprefix("-") in known else ""

    def _sorting(self) -> list[str]:
        sign = "-" if self.sort.startswith("-") else ""
        key = self.sort.removeprefix("-")
        return [sign + name for column in self.columns if column.key == key for name in column.by]

    @cached_property
    def page(self) -> Page:
        return Paginator(self.all_rows, self.per_page).get_page(self.given.get(self.page_name))

    @property
    def rows(self) -> Iterable[Row]:
        return self.page.object_list

    @property
    def total(self) -> int:
        return self.page.paginator.count

    @property
    def is_filtered(self) -> bool:
        return any(value for _, value in self.filters)

    @property
    def headers(self) -> Iterator[Header]:
        for column in self.columns:
            ascending, descending = self.sort == column.key, self.sort == f"-{column.key}"
            href = self.url(sort=f"-{column.key}" if ascending else column.key) if column.by else ""
            yield Header(column, href, "ascending" if ascending else "descending" if descending else "")

    def url(self, **changed: str | None) -> str:
        """This list with something else of it changed; the page begins anew unless it is what changes."""
        return changed_query(self.given, **{self.page_name: None, **changed})

    @property
    def csv_url(self) -> str:
        return self.url(format="csv")

    @property
    def previous_url(self) -> str:
        return (
            self.url(**{self.page_name: str(self.page.previous_page_number())})
            if self.page.has_previous()
            else ""
        )

    @property
    def next_url(self) -> str:
        return self.url(**{self.page_name: str(self.page.next_page_number())}) if self.page.has_next() else ""

    @property
    def kept(self) -> Iterator[tuple[str, str]]:
        """What the filter form has to carry along unseen."""
        own = {self.page_name, "format", *(field.name for field, _ in self.filters)}
        for name, values in self.given.lists():
            if name not in own:
                yield from ((name, value) for value in values)


def cut(names: Sequence[str], most: int = SHOWN) -> list[str]:
    """The first names, and in their place how many others there are."""
    more = len(names) - most
    return [*names[:most], f"and {more:,} more"] if more > 0 else list(names)


def sorted_rows(rows: Any, sorting: Sequence[str]) -> Any:
    """Sorted by these fields ("-" for descending), missing values last either way."""
    if not sorting:
        return rows
    if isinstance(rows, QuerySet):
        by = [
            F(name[1:]).desc(nulls_last=True) if name.startswith("-") else F(name).asc(nulls_last=True)
            for name in sorting
        ]
        return rows.order_by(*by, "pk")
    ordered = list(rows)
    for name in reversed(sorting):
        read, descending = attrgetter(name.removeprefix("-")), name.startswith("-")
        there = [row for row in ordered if read(row) is not None]
        missing = [row for row in ordered if read(row) is None]
        ordered = sorted(there, key=read, reverse=descending) + missing
    return ordered


def changed_query(given: QueryDict, **changed: str | Sequence[str] | None) -> str:
    """The query string with some parameters set, replaced or (None) taken away: ``?sort=name&page=2``."""
    query = given.copy()
    for name, value in changed.items():
        if value is None:
            query.pop(name, None)
        elif isinstance(value, str):
            query[name] = value
        else:
            query.setlist(name, list(value))
    return "?" + query.urlencode()


# CSV --------------------------------------------------------------------------------------------------------


class _Echo:
    """What csv.writer writes to: gives each line back."""

    def write(self, line: str) -> str:
        return line


def csv_response(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A CSV file, written as it is sent. Texts that a spreadsheet would run as a formula are quoted."""
    return StreamingHttpResponse(
        _csv_lines(header, rows),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def _csv_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value


# The API call of a page -------------------------------------------------------------------------------------


def curl_for(request: HttpRequest, method: str, path: str, body: Any = None) -> str:
    """A curl command, ready for a shell: ``curl -H "Authorization: $API_KEY" 'http://…'``.

    ``path`` begins with a slash and brings its own query; ``body`` becomes JSON, in a file where it is long.
    """
    parts = ["curl"]
    if method != ("GET" if body is None else "POST"):
        parts += ["-X", method]
    parts += ["-H", '"Authorization: $API_KEY"']
    if body is not None:
        parts += ["-H", "'Content-Type: application/json'"]
        text = orjson.dumps(body).decode()
        parts += ["-d", shlex.quote(text) if len(text) <= MOST_IN_CURL else "@body.json"]
    parts.append(shlex.quote(request.build_absolute_uri(path)))
    return " ".join(parts)


# Forms ------------------------------------------------------------------------------------------------------


def add_problems(form: BaseForm, error: AppError, *, fields: Mapping[str, str] | None = None) -> None:
    """Puts what an action refused beside the fields concerned, the rest above the form.

    ``fields`` maps JSON paths to form fields where the names differ (``{"defaultStickiness": "stickiness"}``). What is
    wrong within a value (``tags[1].value``) stands beside the field of the whole.
    """
    placed = 0
    for problem in error.details:
        whole = re.split(r"[.\[]", problem.path)[0]
        named = (fields or {}).get(problem.path) or (fields or {}).get(whole)
        name = named or (problem.path if problem.path in form.fields else whole)
        if name in form.fields:
            form.add_error(name, problem.message)
            placed += 1
    if placed < len(error.details) or not error.details:
        form.add_error(None, error.message)


def curl_with_token(request: HttpRequest, path: str, secret: str) -> str:
    """A curl command with the key itself in it, for the one page that shows it."""
    return curl_for(request, "GET", path).replace('"Authorization: $API_KEY"', f"'Authorization: {secret}'")
