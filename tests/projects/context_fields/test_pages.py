"""/context-fields/: the list, creating, changing, and the effects of deleting a field."""

import pytest

from projects.models import ContextField
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text
from tests.support.scenery import make_vocabulary


@pytest.fixture
def plan(shop):
    make_vocabulary()
    flag = make_flag("lounge")
    add_strategy(flag, constraints=[{"contextName": "plan", "operator": "IN", "values": ["pro"]}])
    return ContextField.objects.get(pk="plan")


def test_fields_are_listed_with_their_values_and_use(browse, plan):
    rows = csv_rows(browse("reader").get("/context-fields/?format=csv&q=plan"))

    assert rows[1] == ["plan", "free, pro, enterprise", "", "", "1"]

    page = page_text(browse("editor").get("/context-fields/plan/"))

    assert "lounge in development, project shop" in page
    assert "Segment vip-users" in page

    refused = browse("editor").post("/context-fields/new", {"name": "plan", "sort_order": "3"})

    assert refused.status_code == 409
    assert "A context field named plan already exists." in page_text(refused)

    assert browse("editor").get("/context-fields/nosuch/").status_code == 404


def test_a_field_is_created_with_its_legal_values(browse, plan):
    form = {
        "name": "tier",
        "sort_order": "3",
        "stickiness": "on",
        "legal_values": "gold :: the best\r\n\r\nsilver",
    }

    answer = browse("editor").post("/context-fields/new", form)

    assert answer["Location"] == "/context-fields/"
    field = ContextField.objects.get(pk="tier")
    assert field.legal_values == [{"value": "gold", "description": "the best"}, {"value": "silver"}]
    assert (field.stickiness, field.sort_order, field.project_id) == (True, 3, None)


def test_an_owner_creates_one_of_the_project(browse, plan):
    given = {"name": "tier", "sort_order": "3"}

    browse("owner").post("/context-fields/new", given | {"project_id": "shop"})

    assert ContextField.objects.get(pk="tier").project_id == "shop"
    assert browse("owner").post("/context-fields/new", given | {"name": "tier-2"}).status_code == 403


@for_each(
    ("changed", "field", "problem"),
    [
        ({"name": "a b"}, "name", "Spaces are not allowed"),
        ({"legal_values": "a\nb\na"}, "legal_values", '"a" is listed more than once'),
        ({"sort_order": "x"}, "sort_order", "whole number"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(browse, plan, changed, field, problem):
    refused = browse("editor").post("/context-fields/new", {"name": "tier", "sort_order": "3"} | changed)

    assert refused.status_code == 400
    assert problem in refused.context["form"].errors[field][0]


def test_deleting_says_what_goes_on(browse, plan):
    browser = browse("editor")

    page = page_text(browser.get("/context-fields/plan/delete"))
    assert "context field plan with its 3 legal values" in page
    assert "Whatever reads plan keeps working" in page
    assert "lounge in development, project shop" in page
    assert browser.post("/context-fields/plan/delete")["Location"] == "/context-fields/"
    assert not ContextField.objects.filter(pk="plan").exists()


def test_deleting_names_projects_that_are_kept_by_it(browse, plan, shop):
    shop.default_stickiness = "plan"
    shop.save()
    page = page_text(browse("editor").get("/context-fields/plan/delete"))
    assert "The settings of shop cannot be saved until they have another default stickiness." in page
    assert "shop default stickiness" in page


@for_each("page", ["/context-fields/plan/", "/context-fields/plan/delete"])
def test_many_uses_are_paged(browse, plan, page):
    for number in range(60):
        add_strategy(
            make_flag(f"lounge-{number:02}"), constraints=[{"contextName": "plan", "operator": "IN"}]
        )

    first, second = browse("admin").get(page), browse("admin").get(f"{page}?page=2")

    assert first.text.count("features/lounge") == 50
    assert "1–50 of" in page_text(first)
    assert second.text.count("features/lounge") == 11
