"""Every list: its head, rows and CSV file have the same columns, because each column is one record."""

import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from django.test import Client

from flagadmin.core.lists.columns import Column
from groups.models import User
from groups.roles.pages import RolesPage
from tests.support.cast import log_in
from tests.support.demo import loaded_demo
from tests.support.page_text import csv_rows

__all__ = ["loaded_demo"]

LISTS = (
    "/access/groups/", "/access/people/", "/access/roles/", "/access/roles/4/", "/access/roles/4/?by=holder",
    "/access/service-accounts/", "/access/tokens/", "/applications/", "/context-fields/", "/environments/",
    "/imports/", "/integrations/", "/playground/analyses/", "/playground/contexts/",
    "/playground/expectations/", "/projects/", "/projects/checkout/access/",
    "/projects/checkout/applications/",
    "/release-plans/", "/release-templates/", "/requests/", "/segments/", "/strategy-types/", "/tag-types/",
)  # fmt: skip


@pytest.fixture
def browse_demo(loaded_demo, db):
    return log_in(Client(), User.objects.get(pk=loaded_demo.pk))


def read_list(browser, url):
    """The labels of the list's head, of each row's cells, and of its CSV file."""
    page = BeautifulSoup(browser.get(url).text, "html.parser")
    table = page.select_one("main th[data-key]").find_parent("table")
    heads = [re.sub(r"\s+", " ", head.text).strip() for head in table.select("thead tr:last-child th")]
    rows = [
        [cell.get("data-label") for cell in row.find_all(["th", "td"])] for row in table.select("tbody tr")
    ]
    header, *lines = csv_rows(browser.get(url + ("&" if "?" in url else "?") + "format=csv"))
    return heads, rows, header, lines


@pytest.mark.parametrize("url", LISTS)
def test_head_rows_and_csv_have_the_same_columns(browse_demo, url):
    heads, rows, header, lines = read_list(browse_demo, url)

    assert rows
    assert heads[: len(header)] == header
    for labels in rows:
        assert len(labels) == len(heads)
        assert all(label in (None, "", head) for label, head in zip(labels, heads, strict=True))
    assert len(lines) >= len(rows)
    assert {len(line) for line in lines} == {len(header)}


def test_a_column_is_added_in_one_place(browse_demo, monkeypatch):
    fake = Column(
        "fake", "Fake", by=("name",), cell="<b>{{ row.name|upper }}</b>", csv=lambda row: f"{row.name}!"
    )
    monkeypatch.setattr(RolesPage, "columns", (*RolesPage.columns, fake))

    heads, rows, header, lines = read_list(browse_demo, "/access/roles/?sort=-fake")

    assert heads[-1] == header[-1] == rows[0][-1] == "Fake"
    assert [line[-1] for line in lines] == sorted((f"{line[0]}!" for line in lines), reverse=True)
    assert f"<b>{lines[0][0].upper()}</b>" in browse_demo.get("/access/roles/?sort=-fake").text


def test_a_value_that_is_missing_is_empty_in_csv_and_a_word_on_the_page():
    column = Column("owner", "Owner", by=("owner__name",), none="nobody", link="{{ row.url }}")

    assert column.read_csv({"owner": None}) is None
    assert column.read_csv({"owner": {"name": "ada"}}) == "ada"
    assert '<span class="muted">nobody</span>' in column.make_cell(heads_row=False)
    assert replace(column, csv="url").read_csv({"url": "/x"}) == "/x"
