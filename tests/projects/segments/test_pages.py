"""/segments/: the list, creating, changing, and what blocks deleting a segment."""

from html import unescape

import pytest

from projects.models import Segment, StrategySegment
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text
from tests.support.scenery import make_vocabulary


def form(**fields):
    sent = {"name": "eu", "c": "0", "c-0-field": "country", "c-0-operator": "IN", "c-0-choice": ["DE", "NO"]}
    return sent | fields


@pytest.fixture
def vip(shop):
    make_vocabulary()
    return Segment.objects.get(name="vip-users")


@pytest.fixture
def used(vip):
    StrategySegment.objects.create(strategy=add_strategy(make_flag("lounge")), segment=vip)
    return vip


def test_segments_are_listed_in_words_with_who_uses_them(browse, used):
    rows = csv_rows(browse("reader").get("/segments/?format=csv"))

    assert rows[2] == ["vip-users", "plan is one of enterprise", "", "1"]

    browser = browse("editor")

    assert "lounge in development, project shop" in page_text(browser.get(f"/segments/{used.pk}/"))
    page = browser.get(f"/segments/{used.pk}/delete")
    assert "is in use on 1 flag: lounge. Remove it there first." in page_text(page)
    assert browser.post(f"/segments/{used.pk}/delete").status_code == 409
    assert Segment.objects.filter(pk=used.pk).exists()


def test_segments_of_other_projects_are_not_listed(browse, vip):
    Segment.objects.filter(pk=vip.pk).update(project="default")

    assert "vip-users" not in browse("reader").get("/segments/").text
    assert browse("reader").get(f"/segments/{vip.pk}/").status_code == 404


def test_creating_under_a_free_name(browse, vip):
    answer = browse("editor").post("/segments/new", form())

    assert answer["Location"] == "/segments/"
    assert Segment.objects.get(name="eu").constraints[0]["values"] == ["DE", "NO"]

    refused = browse("editor").post("/segments/new", form(name="vip-users"))

    assert refused.status_code == 409
    assert "A segment named vip-users already exists." in page_text(refused)


def test_a_member_with_the_right_creates_one_of_the_project(browse, vip):
    browse("owner").post("/segments/new", form(project="shop"))

    assert Segment.objects.get(name="eu").project_id == "shop"
    assert browse("owner").post("/segments/new", form(name="eu-2")).status_code == 403


@for_each(
    ("changed", "place", "problem"),
    [
        ({"name": ""}, "name-error", "a name is required"),
        ({"c-0-choice": "XX"}, "c-0-error", "XX is not a legal value of country"),
        ({"project": "nosuch"}, "project-error", "Project nosuch not found"),
    ],
)
def test_what_is_wrong_stands_in_its_place(browse, vip, changed, place, problem):
    refused = browse("editor").post("/segments/new", form(**changed))

    assert refused.status_code == 400
    assert problem in unescape(refused.text.split(f'id="{place}"')[1][:300])


def test_rows_are_added_and_removed_without_saving(browse, vip):
    browser, page = browse("editor"), f"/segments/{vip.pk}/"

    assert 'name="c-1-field"' in browser.post(page, form(do="refresh", **{"condition-field": "x"})).text
    assert 'name="c-0-field"' not in browser.post(page, form(do="remove-constraint-0")).text
    vip.refresh_from_db()
    assert vip.constraints[0]["contextName"] == "plan"


def test_deleting(browse, vip):
    assert browse("editor").post(f"/segments/{vip.pk}/delete")["Location"] == "/segments/"
    assert not Segment.objects.filter(pk=vip.pk).exists()


@for_each(("address", "status"), [("/segments/999999/", 404), ("/segments/x/", 400)])
def test_what_is_not_there(browse, vip, address, status):
    assert browse("editor").get(address).status_code == status


@pytest.fixture
def dated(vip):
    odd = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2022-01-29", "values": []}
    Segment.objects.filter(pk=vip.pk).update(constraints=[odd])
    return vip


def test_a_value_that_sdks_cannot_read_is_saved_when_confirmed(browse, dated):
    own = {
        "name": "renamed",
        "c-0-field": "currentTime",
        "c-0-operator": "DATE_AFTER",
        "c-0-value": "2022-01-29",
    }
    asked = browse("editor").post(f"/segments/{dated.pk}/", form(**own))
    assert asked.status_code == 400
    assert "2022-01-29T00:00:00.000Z was probably meant" in asked.text
    assert 'name="keep_unreadable"' in asked.text
    assert 'value="2022-01-29"' in asked.text

    done = browse("editor").post(f"/segments/{dated.pk}/", form(**own, keep_unreadable="yes"))
    assert done.status_code == 302
    dated.refresh_from_db()
    assert (dated.name, dated.constraints[0]["value"]) == ("renamed", "2022-01-29")


def test_a_form_without_such_values_asks_nothing(browse, dated):
    assert "keep_unreadable" not in browse("editor").get("/segments/new").text
    refused = browse("editor").post("/segments/new", form(name="", keep_unreadable="yes"))
    assert refused.status_code == 400
    assert "keep_unreadable" not in refused.text
