"""Error pages say what to do next and name no class."""

import re

import pytest
from django.test import Client

from tests.support.page_text import page_text

PAGE = "/projects/shop/"


def test_a_page_that_is_not_there_leads_on(browse, shop):
    answer = browse("admin").get(
        "/projects/shop/features/crat/", headers={"referer": f"http://testserver{PAGE}"}
    )
    assert answer.status_code == 404
    html = answer.content.decode()
    assert re.search(r'action="/search/".*name="q" value="crat"', html, re.DOTALL)
    assert f'<a href="http://testserver{PAGE}">Back</a>' in html
    assert re.search(r"Error 404 · id [0-9a-f]{32}", page_text(answer))
    assert "NotFound" not in html


@pytest.mark.parametrize(
    "address", ["https://elsewhere.example/", "http://testserver/nowhere/", "http://[", ""]
)
def test_there_is_no_way_back_to_elsewhere_or_to_here(browse, address):
    assert ">Back<" not in browse("admin").get("/nowhere/", headers={"referer": address}).content.decode()


def test_a_refusal_names_the_permission(browse, shop):
    html = browse("reader").get("/access/roles/new/").content.decode()
    assert "NoAccess" not in html
    assert "Your access" in html


def test_a_failure_offers_another_try(monkeypatch, people):
    monkeypatch.setattr("projects.projects.pages.ProjectsPage.get_filters", lambda _: 1 / 0, raising=False)
    browser = Client(raise_request_exception=False)
    browser.force_login(people["admin"])
    answer = browser.get("/projects/")
    assert answer.status_code == 500
    assert "Try again" in page_text(answer)
    assert "UnknownError" not in answer.content.decode()
