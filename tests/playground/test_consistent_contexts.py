"""The page, the download and the API read a context identically, and format numbers identically."""

import json

import pytest

from tests.support.cast import client, make_token
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.import_bodies import body, strategy, switch

BIG = 12345678901234567890
AS_TEXT = "12345678901234567000"
ADVANCED = "/api/admin/playground/advanced"


def users(features, environment="development"):
    return [result["context"].get("userId") for result in features[0]["environments"][environment]]


def header_of(browse, given):
    return browse("viewer").get("/playground/", given).getvalue().decode().splitlines()[0]


@pytest.fixture
def asked(browse, shop):
    """The contexts of the page's download, for these parameters of its address."""
    make_flag("cart")
    return lambda **given: browse("viewer").get("/playground/", given | {"format": "json"}).json()


def test_blanks_beside_commas_are_part_of_a_value(api, asked):
    here = asked(environment="development", **{"context.userId": "42, 7,"})
    given = {"environments": ["development"], "projects": "*", "context": {"userId": "42, 7,"}}
    there = api["viewer"].post(ADVANCED, given).json()
    assert users(here["features"]) == users(there["features"]) == ["42", " 7", ""]


def test_the_page_shows_the_same_columns(browse, shop):
    make_flag("cart")
    given = {"environment": "development", "context.userId": "42, 7", "format": "csv"}
    header = header_of(browse, given)
    assert "userId 42: result" in header
    assert "userId  7: result" in header


def test_a_comma_in_json_is_part_of_a_value_in_one_environment(asked):
    found = asked(environment="development", json=json.dumps({"userId": "a,b"}))
    assert found["input"]["context"] == {"userId": "a,b"}
    assert [flag["name"] for flag in found["features"]] == ["cart"]


def test_and_separates_them_in_several_on_the_page_as_in_the_download(browse, asked):
    given = {"environment": ["development", "production"], "json": json.dumps({"userId": "a,b"})}
    assert users(asked(**given)["features"]) == ["a", "b"]
    header = header_of(browse, given | {"format": "csv"})
    for column in ("development · userId a", "development · userId b", "production · userId b"):
        assert f"{column}: result" in header


@for_each("way_in", ["api", "import"])
def test_a_large_number_is_one_text_on_both_sides(api, shop, way_in):
    constraint = {"contextName": "userId", "operator": "IN", "values": [BIG]}
    if way_in == "api":
        flag = make_flag("cart")
        path = "/api/admin/projects/shop/features/cart/environments/development/strategies"
        added = api["member"].post(path, {"name": "default", "constraints": [constraint]})
        assert added.json()["constraints"][0]["values"] == [AS_TEXT]
        switch_on(flag)
    else:
        given = body(
            "cart",
            featureStrategies=[strategy("cart", constraints=[constraint])],
            featureEnvironments=[switch("cart")],
        )
        assert api["owner"].post("/api/admin/features-batch/import", given).status_code == 200
    for user in (BIG, AS_TEXT):
        sent = {"environment": "development", "projects": ["shop"], "context": {"userId": user}}
        [found] = api["viewer"].post("/api/admin/playground", sent).json()["features"]
        assert found["isEnabled"] is True


@for_each("method", ["get", "post"])
def test_a_bad_time_is_refused_by_the_frontend_api(shop, method):
    flag = make_flag("cart")
    add_strategy(flag)
    web = client(make_token("frontend", projects=["shop"], environment="development"))
    if method == "get":
        refused = web.get("/api/frontend?currentTime=junk")
    else:
        refused = web.post("/api/frontend", {"context": {"currentTime": "junk"}})
    assert refused.status_code == 400
    assert refused.json()["details"][0]["path"] == "context.currentTime"
