"""The strategy type of docs/engine.md is one entry: installations, forms, the API, sentences and evaluation know it."""

import html

import pytest

from playground.comparison.rules import find_own_constraints
from playground.engine import strategy_types
from projects.seed import seed_projects
from tests.documentation.blocks import blocks
from tests.support.flags import make_flag, switch_on
from tests.support.page_text import page_text

FLAG = "/api/admin/projects/shop/features/cart/environments/development/strategies"
PAGE = "/projects/shop/features/cart/strategies/edit?environmentId=development&strategyId="
STRATEGY = {"name": "applicationName", "parameters": {"appNames": "web,ios"}}


@pytest.fixture(autouse=True)
def _application_name(db, monkeypatch):
    [entry] = [block.text for block in blocks("docs/engine.md") if block.text.startswith("StrategyType(")]
    kind = eval(entry, vars(strategy_types))
    monkeypatch.setitem(strategy_types.STRATEGY_TYPES, kind.name, kind)
    seed_projects(using="default")


def ask(api, application):
    body = {"environment": "development", "projects": ["shop"], "context": {"appName": application}}
    [flag] = api["admin"].post("/api/admin/playground", body, format="json").json()["features"]
    return flag["isEnabled"], flag["reason"]


def test_a_new_strategy_type_is_known_everywhere(api, browse, shop):
    flag = make_flag("cart")
    listed = {kind["name"]: kind for kind in api["viewer"].get("/api/admin/strategies").json()["strategies"]}
    assert listed["applicationName"]["parameters"][0]["name"] == "appNames"
    assert "On for the applications listed." in page_text(browse("viewer").get("/strategy-types/"))
    added = api["member"].post(FLAG, STRATEGY, format="json")
    assert added.status_code == 200, added.content
    switch_on(flag)

    assert ask(api, "web")[0] is True
    assert ask(api, "tv") == (False, "appName is tv, needs one of web, ios")
    page = html.unescape(browse("member").get(PAGE + added.json()["id"]).text)
    assert all(
        text in page for text in ("Applications", "Application names", "Without versions.", "web\nios")
    )
    assert "On for the applications web, ios" in page_text(
        browse("viewer").get("/projects/shop/features/cart/")
    )
    [constraint] = find_own_constraints(STRATEGY)
    assert constraint["values"] == ["web", "ios"]
