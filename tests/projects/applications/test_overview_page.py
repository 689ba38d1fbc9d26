"""/applications/: the applications of all projects that the user may read."""

import pytest

from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text
from tests.support.sdk import make_sdk

URL = "/applications/"


@pytest.fixture
def used(shop):
    make_flag("cart")
    production = make_sdk("production")
    for name in ("web", "cron"):
        production.register(name, f"{name}-1", sdkVersion="unleash-node-sdk:5.9.0")
        production.count(name, ["cart"], f"{name}-1")


def names(browser, query=""):
    lines = csv_rows(browser.get(f"{URL}?format=csv&{query}"))
    return [line[:2] for line in lines][1:]


def test_each_application_with_its_projects(browse, used):
    page = page_text(browse("reader").get(URL))
    assert "2 applications" in page
    assert "shop in production" in page

    assert names(browse("outsider")) == []

    assert f'href="{URL}"' in browse("reader").get("/projects/").text


@for_each(
    ("query", "expected"),
    [("", ["cron", "web"]), ("q=WE", ["web"]), ("sort=-name", ["web", "cron"]), ("q=nosuch", [])],
)
def test_it_is_searched_and_sorted(browse, used, query, expected):
    assert names(browse("reader"), query) == [[name, "shop"] for name in expected]
