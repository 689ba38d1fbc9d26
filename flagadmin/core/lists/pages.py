"""Building blocks of console pages: lists, CSV, curl commands and form errors.

How to write a page:

1. Write the view in ``APP/SUBJECT/pages.py`` and add a named route to ``APP/console_urls.py``. The view
   extends one of the classes in ``groups.console``:

   * ``ConsolePage``: any page. Set ``template_name`` and ``title`` and override ``get_context_data``.
     ``self.caller`` is the user. Raise the same errors as the API (NotFound, NoAccess, …); they are shown as
     an error page.
   * ``ListPage``: a table. Declare ``columns``, each with its head, cells and CSV values, and ``filters``;
     ``get_rows(values)`` returns a queryset or a list, ``complete(rows)`` adds what cells need beside it. Filters,
     sorting and page are in the URL. It needs no template, or one that extends ``console/list.html``.
   * ``FormPage``: a form. Declare its ``button`` and the ``permission`` that it needs. ``find()`` loads and
     authorizes, ``submit(form) -> url`` calls the action, and returns ``self.done(sentence, url)``; its errors are
     shown beside the fields. ``EditPage`` also detects changes by others since the form was rendered.
   * ``SubmitPage``: a form written in the template. ``submit() -> url`` calls the action; a refusal is shown on the
     same page, as ``refusal``. ``ask_first`` may answer with a question before that.
   * ``ActionPage``: a button. ``ConfirmPage``: a button that asks for confirmation, for changes that cannot
     be undone.

   All of them declare their ``parents``, the ``[(label, url), …]`` of the pages above, and the equivalent
   ``api_call``. If they depend on the database, override the method that reads the attribute: ``get_breadcrumbs``,
   ``get_title``, ``get_filters``, ``get_api_body``, or ``get_curl`` (use :func:`curl_for`). The URL decides which
   navigation entry is current (``flagadmin/console/navigation.py``).
2. Write the template ``templates/SUBJECT/NAME.html``: ``{% extends "base.html" %}``, ``{% block content %}``,
   and optionally ``lead`` (a line below the title) and ``actions`` (buttons to the right of the title). Keep
   it under 60 lines, without queries or logic, and write links with ``{% url %}``. Partials shared by several
   subjects are in ``templates/includes/``; the first line of each lists its parameters.
   Useful classes in ``assets/styles/``: ``card``, ``cards``, ``row`` (elements side by side), ``muted``,
   ``mono``, ``small``, ``pill on|off|unknown|info|warn``, ``note warn|error|success``, ``num`` (right-aligned cell),
   ``danger``, ``diff`` with ``<del>``/``<ins>``, ``stack`` (a table that becomes a list on narrow screens).
3. Do not use ``style=``, ``on…=`` attributes or inline scripts: the content security policy forbids them.
   Data attributes attach behavior, see ``assets/js/``. Every page must work without JavaScript.
4. Add a view test to ``tests/APP/SUBJECT/test_pages.py``, and the page's URL to ``tests/browser/pages.py``,
   which checks accessibility in both themes, requests to other hosts and policy violations.
"""

import csv
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

import orjson
from django.core.paginator import Page, Paginator
from django.db.models import F, Q, QuerySet
from django.forms import BaseForm
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.utils.functional import cached_property
from rest_framework.request import Request

from flagadmin.core.errors import AppError, ValidationError, choices
from flagadmin.core.lists.columns import Column

Row = TypeVar("Row")
MAX_OPTIONS = 200  # choices in a select; a field with more is a text input
MAX_NAMES = 100  # names in a sentence or in a list without pages
MAX_IN_CURL = 10_000  # characters of a body that a curl command contains inline


# Lists ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """A field of the filter form: a select if it has ``options`` [(value, label)], otherwise a text input.

    ``by`` names the fields of rows of the database that it looks into.
    """

    name: str
    label: str
    options: Sequence[tuple[str, str]] | None = None
    by: tuple[str, ...] = ()

    def narrow(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The rows with the value in one of the fields of ``by``, or with a text that includes it."""
        if not value or not self.by:
            return rows
        lookup = "icontains" if self.options is None else "exact"
        return rows.filter(Q(*((f"{field}__{lookup}", value) for field in self.by), _connector=Q.OR))

    def value(self, query: QueryDict) -> str:
        """The filter's value in the URL; "" for no filter. Raises ValidationError with the options."""
        value = query.get(self.name, "").strip()
        if self.is_typed and self.options is not None:
            value = next((key for key, label in self.options if label == value), value)
        if value and self.options is not None and value not in dict(self.options):
            names = choices(key for key, _ in self.options)
            available = f"Available: {names}." if names else "There are none."
            raise ValidationError.at(self.name, f"{value} not found. {available}")
        return value

    @property
    def is_typed(self) -> bool:
        """Whether the field is a text input because it has no options, or too many for a select."""
        return self.options is None or len(self.options) > MAX_OPTIONS

    @property
    def offered(self) -> Sequence[tuple[str, str]]:
        return (self.options or ())[:MAX_OPTIONS]

    def label_of(self, value: str) -> str:
        return dict(self.options or ()).get(value, value)


@dataclass(frozen=True, slots=True)
class Header:
    """A column header: the URL that sorts by the column, and the current sort direction."""

    column: Column
    href: str
    direction: str  # "ascending", "descending" or ""


class Listing(Generic[Row]):
    """One list, sorted and paged as the URL requests, with links that change the sorting and the page."""

    def __init__(
        self,
        query: QueryDict,
        rows: "QuerySet[Any] | Sequence[Row]",
        *,
        columns: Sequence[Column],
        filters: Sequence[Filter] = (),
        default_sort: str = "",
        per_page: int = 50,
        page_name: str = "page",
    ) -> None:
        self.query = query
        self.page_name = page_name
        self.columns = columns
        self.filters = [(field, field.value(query)) for field in filters]
        self.sort = self._read_sort(query.get("sort", "")) or default_sort
        self.all_rows = sort_rows(rows, self._list_sorting())
        self.per_page = per_page

    def _read_sort(self, sort: str) -> str:
        known = {column.key for column in self.columns if column.by}
        return sort if sort.removeprefix("-") in known else ""

    def _list_sorting(self) -> list[str]:
        sign = "-" if self.sort.startswith("-") else ""
        key = self.sort.removeprefix("-")
        return [sign + name for column in self.columns if column.key == key for name in column.by]

    @cached_property
    def page(self) -> Page:
        return Paginator(self.all_rows, self.per_page).get_page(self.query.get(self.page_name))

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
        """The URL with some parameters changed. Without a page among them, it shows the first page."""
        return change_query(self.query, **{self.page_name: None, **changed})

    @property
    def csv_url(self) -> str:
        return self.url(format="csv")

    @property
    def spreadsheet_url(self) -> str:
        return change_query(self.query, **{self.page_name: None, "format": "csv", SPREADSHEET: "true"})

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
        """The URL parameters that the filter form must submit as hidden inputs."""
        own = {self.page_name, "format", SPREADSHEET, *(field.name for field, _ in self.filters)}
        for name, values in self.query.lists():
            if name not in own:
                yield from ((name, value) for value in values)


def cut(names: Sequence[str], limit: int = MAX_NAMES) -> list[str]:
    """The first ``limit`` names, followed by the number of the others: "and 240 more"."""
    more = len(names) - limit
    return [*names[:limit], f"and {more:,} more"] if more > 0 else list(names)


def sort_rows(rows: Any, sorting: Sequence[str]) -> Any:
    """Sorts rows by these fields ("-" for descending). Missing values come last in both directions."""
    if not sorting:
        return rows
    if isinstance(rows, QuerySet):
        orders = [
            F(name[1:]).desc(nulls_last=True) if name.startswith("-") else F(name).asc(nulls_last=True)
            for name in sorting
        ]
        return rows.order_by(*orders, "pk")
    ordered = list(rows)
    for name in reversed(sorting):
        attribute, descending = attrgetter(name.removeprefix("-")), name.startswith("-")
        present = [row for row in ordered if attribute(row) is not None]
        missing = [row for row in ordered if attribute(row) is None]
        ordered = sorted(present, key=attribute, reverse=descending) + missing
    return ordered


def change_query(parameters: QueryDict, **changes: str | Sequence[str] | None) -> str:
    """The query string with some parameters set, replaced or (None) removed: ``?sort=name&page=2``."""
    query = parameters.copy()
    for name, value in changes.items():
        if value is None:
            query.pop(name, None)
        elif isinstance(value, str):
            query[name] = value
        else:
            query.setlist(name, list(value))
    return "?" + query.urlencode()


# CSV --------------------------------------------------------------------------------------------------------

SPREADSHEET = "spreadsheet"
"""The parameter that asks for a CSV file without formulas."""
# Spreadsheets skip a line break, and some treat full-width signs like the ASCII ones.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class _Echo:
    """A file-like object for csv.writer: ``write`` returns the line."""

    def write(self, line: str) -> str:
        return line


def make_csv_response(
    request: HttpRequest | Request, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Streams a CSV file with the unchanged data, or with ``?spreadsheet=true`` without formulas."""
    return StreamingHttpResponse(
        _format_csv_lines(header, rows, for_spreadsheet=is_for_spreadsheet(request)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def is_for_spreadsheet(request: HttpRequest | Request) -> bool:
    return request.GET.get(SPREADSHEET) == "true"


def _format_csv_lines(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, for_spreadsheet: bool
) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(header)
    for row in rows:
        cells = map(_format_csv_cell, row)
        yield writer.writerow(map(quote_formula, cells) if for_spreadsheet else cells)


def _format_csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def quote_formula(value: Any) -> Any:
    """Puts an apostrophe before a text that a spreadsheet would run as a formula."""
    return "'" + value if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


# The API call of a page -------------------------------------------------------------------------------------


def curl_for(request: HttpRequest, method: str, path: str, body: Any = None) -> str:
    """A curl command, quoted for a shell: ``curl -H "Authorization: $TOKEN" 'http://…'``.

    ``path`` begins with a slash and includes the query string. ``body`` is sent as JSON; the command reads a
    long one from a file.
    """
    parts = ["curl"]
    if method != ("GET" if body is None else "POST"):
        parts += ["-X", method]
    parts += ["-H", '"Authorization: $TOKEN"']
    if body is not None:
        parts += ["-H", "'Content-Type: application/json'"]
        text = orjson.dumps(body).decode()
        parts += ["-d", shlex.quote(text) if len(text) <= MAX_IN_CURL else "@body.json"]
    parts.append(shlex.quote(request.build_absolute_uri(path)))
    return " ".join(parts)


# Forms ------------------------------------------------------------------------------------------------------


def add_problems(form: BaseForm, error: AppError, *, fields: Mapping[str, str] | None = None) -> None:
    """Shows an action's errors beside the fields concerned, and the others above the form.

    ``fields`` maps JSON paths to form fields with different names (``{"defaultStickiness": "stickiness"}``). An error
    inside a value (``tags[1].value``) is shown beside the field of the whole value.
    """
    number = 0
    for problem in error.details:
        member = re.split(r"[.\[]", problem.path)[0]
        field_name = (fields or {}).get(problem.path) or (fields or {}).get(member)
        name = field_name or (problem.path if problem.path in form.fields else member)
        if name in form.fields:
            form.add_error(name, re.sub("^must ", "Must ", problem.message))
            number += 1
    if number < len(error.details) or not error.details:
        form.add_error(None, error.message)


def curl_with_token(request: HttpRequest, path: str, secret: str) -> str:
    """A curl command that contains the token itself, for the page that shows a new token once."""
    return curl_for(request, "GET", path).replace('"Authorization: $TOKEN"', f"'Authorization: {secret}'")


@dataclass(frozen=True, slots=True)
class SetChip:
    """A filter that is set, and the URL without it."""

    label: str
    value: str
    url: str


@dataclass(frozen=True, slots=True)
class FreeChip:
    """A filter that can be set with the links (label, URL), or by typing if there are none.

    A chip of several filters has ``groups`` of links, each with the filter's label.
    """

    field: Filter
    links: Sequence[tuple[str, str]]
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]] = ()


def set_chips(listing: Listing, *, cleared: Sequence[str] = ()) -> list[SetChip]:
    """The set filters, except for the text search. ``cleared``: parameters removed together with any of them."""
    others: dict[str, str | None] = dict.fromkeys(cleared)
    return [
        SetChip(field.label, field.label_of(value), listing.url(**others, **{field.name: None}))
        for field, value in listing.filters
        if value and field.name != "q"
    ]


def free_chips(listing: Listing, names: Sequence[str], *, cleared: Sequence[str] = ()) -> list[FreeChip]:
    """The unset filters of these names."""
    return [
        FreeChip(field, [] if field.is_typed else _make_links(field, listing, cleared))
        for field, value in listing.filters
        if field.name in names and not value and (field.options is None or field.options)
    ]


def join_chips(label: str, listing: Listing, names: Sequence[str]) -> FreeChip:
    """One chip for the unset filters of these names that have options."""
    fields = [
        field for field, value in listing.filters if field.name in names and not value and field.options
    ]
    return FreeChip(
        Filter("", label), (), [(field.label, _make_links(field, listing, ())) for field in fields]
    )


def _make_links(field: Filter, listing: Listing, cleared: Sequence[str]) -> list[tuple[str, str]]:
    others: dict[str, str | None] = dict.fromkeys(cleared)
    return [(text, listing.url(**others, **{field.name: key})) for key, text in field.options or ()]
