"""Shared features of the console's lists: sorting, paging, links that keep the query string, CSV, curl."""

import csv
import io
import shlex
from typing import NamedTuple

import pytest
from django.http import QueryDict
from django.test import RequestFactory

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import Column, Filter, Listing, change_query, curl_for, make_csv_response


class Thing(NamedTuple):
    name: str
    size: int | None


THINGS = [Thing("b", 2), Thing("a", None), Thing("c", 1)]
COLUMNS = (
    Column("name", "Name", by=("name",)),
    Column("size", "Size", by=("size", "name")),
    Column("x", "X"),
)


def listing(query="", rows=THINGS, **options):
    return Listing(QueryDict(query), rows, columns=COLUMNS, default_sort="name", **options)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a", "b", "c"]),
        ("sort=-name", ["c", "b", "a"]),
        ("sort=size", ["c", "b", "a"]),
        ("sort=-size", ["b", "c", "a"]),  # what has no size comes last either way
        ("sort=x", ["a", "b", "c"]),  # cannot be sorted
        ("sort=nosuch", ["a", "b", "c"]),
    ],
)
def test_a_list_is_sorted_by_a_known_column(query, names):
    assert [thing.name for thing in listing(query).rows] == names


def test_a_heads_link_turns_the_order_round_and_begins_at_the_first_page():
    heads = list(listing("sort=name&page=2&q=x").headers)

    assert heads[0].direction == "ascending"
    assert heads[0].href == "?sort=-name&q=x"
    assert heads[1].direction == ""
    assert heads[1].href == "?sort=size&q=x"
    assert heads[2].href == ""


@pytest.mark.parametrize(("page", "shown"), [("1", "a"), ("3", "c"), ("99", "c"), ("nonsense", "a")])
def test_a_page_that_is_not_there_is_the_nearest(page, shown):
    assert [thing.name for thing in listing(f"page={page}", per_page=1).rows] == [shown]


def test_links_to_the_neighboring_pages_keep_the_rest():
    middle = listing("page=2&sort=-name", per_page=1)

    assert (middle.previous_url, middle.next_url) == ("?page=1&sort=-name", "?page=3&sort=-name")
    assert middle.total == 3


def test_a_filter_form_carries_the_rest_along():
    filtered = listing("q=a&page=3&sort=name&env=x&env=y", filters=(Filter("q", "Find"),))

    assert list(filtered.kept) == [("sort", "name"), ("env", "x"), ("env", "y")]
    assert filtered.is_filtered


def test_an_unknown_option_is_refused_naming_the_known_ones():
    with pytest.raises(ValidationError, match=r"red not found\. Available: blue, green\."):
        Filter("color", "Color", [("green", "Green"), ("blue", "Blue")]).value(QueryDict("color=red"))


def test_a_changed_query_sets_replaces_and_removes():
    query = QueryDict("a=1&b=2&b=3")

    assert change_query(query, a=None, b="4", c=["5", "6"]) == "?b=4&c=5&c=6"
    assert query.urlencode() == "a=1&b=2&b=3"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1"])
@pytest.mark.parametrize(
    ("query", "apostrophe"), [("", ""), ("?spreadsheet=true", "'"), ("?spreadsheet=x", "")]
)
def test_only_csv_for_spreadsheets_runs_no_formula(text, query, apostrophe):
    request = RequestFactory().get(f"/{query}")
    response = make_csv_response(request, "things", ["Name", "Size"], [[text, -1], [None, 2]])

    rows = list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode(), newline="")))
    assert rows == [["Name", "Size"], [apostrophe + text, "-1"], ["", "2"]]


def test_curl_survives_a_shell():
    request = RequestFactory().get("/", headers={"Host": "localhost:8000"})
    body = {"name": "it's $(dangerous)"}

    parts = shlex.split(curl_for(request, "POST", "/api/admin/x?y=a b", body))

    assert parts == [
        "curl", "-H", "Authorization: $TOKEN", "-H", "Content-Type: application/json",
        "-d", '{"name":"it\'s $(dangerous)"}', "http://localhost:8000/api/admin/x?y=a%20b",
    ]  # fmt: skip


def test_curl_names_other_methods():
    request = RequestFactory().get("/")

    assert curl_for(request, "DELETE", "/api/x").startswith("curl -X DELETE -H ")


@pytest.mark.parametrize(
    ("options", "available"), [([], "There are none."), ([("a:b", "a:b")], "Available: a:b.")]
)
def test_an_unknown_choice_is_refused_naming_the_choices(options, available):
    with pytest.raises(ValidationError, match=f"x not found. {available}"):
        Filter("tag", "Tag", options).value(QueryDict("tag=x"))
