"""Imports accept numbers and dates that SDKs cannot read, with a warning; forms and the API refuse them."""

import pytest

from playground.engine.suggestions import suggested_value
from projects.models import Segment, Strategy
from tests.support.flags import make_flag
from tests.support.import_bodies import body, strategy

IMPORT = "/api/admin/features-batch/import"
VALUES = [
    ("DATE_AFTER", "2024-01-01", "2024-01-01T00:00:00.000Z"),
    ("DATE_AFTER", "2024-01-01T10:30:00", "2024-01-01T10:30:00.000Z"),
    ("DATE_AFTER", "2024-01-01T10:30:00.123456+02:00", "2024-01-01T08:30:00.123Z"),
    ("DATE_BEFORE", "Mon, 01 Jan 2024 10:00:00 GMT", "2024-01-01T10:00:00.000Z"),
    ("DATE_BEFORE", "Mon Jan 01 2024 10:00:00 GMT+0100 (CET)", "2024-01-01T09:00:00.000Z"),
    ("DATE_BEFORE", "Jan 1, 2024", "2024-01-01T00:00:00.000Z"),
    ("DATE_BEFORE", "1704067200", "2024-01-01T00:00:00.000Z"),
    ("DATE_BEFORE", "1704067200000", "2024-01-01T00:00:00.000Z"),
    ("NUM_GT", ".5", "0.5"),
    ("NUM_LTE", "-.5e1", "-5"),
    ("NUM_EQ", "0x10", "16"),
]


def constraint(operator, value):
    field = "currentTime" if operator.startswith("DATE") else "age"
    return {"contextName": field, "operator": operator, "value": value, "values": []}


def sent(operator, value):
    return body("cart", featureStrategies=[strategy("cart", constraints=[constraint(operator, value)])])


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_an_import_takes_them_unchanged_and_warns(api, shop, operator, value, intended):
    given = sent(operator, value)

    told = api["admin"].post(f"{IMPORT[:-6]}validate", given, format="json").json()
    assert told["errors"] == []
    [note] = told["warnings"][-1]["affectedItems"]
    assert note.startswith(f"cart: SDKs cannot read {operator} {value} and never match it; {intended} was")
    assert "data.featureStrategies[0].constraints[0].value" in note

    assert api["admin"].post(IMPORT, given, format="json").status_code == 200
    assert Strategy.objects.get(flag__name="cart").constraints == [constraint(operator, value)]


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_the_playground_says_the_same(api, shop, operator, value, intended):
    given = sent(operator, value)
    given["data"]["featureEnvironments"] = [{"name": "cart", "featureName": "cart", "enabled": True}]
    api["admin"].post(IMPORT, given, format="json")
    asked = {"environment": "development", "projects": ["shop"], "context": {"age": "1"}}

    [flag] = api["admin"].post("/api/admin/playground", asked, format="json").json()["features"]

    assert flag["isEnabled"] is False
    assert f"; SDKs never match it, {intended} was probably meant" in flag["reason"]


def test_in_a_segment_too(api, shop):
    value = constraint("DATE_AFTER", "2024-01-01")
    given = body(
        "cart",
        featureStrategies=[strategy("cart", segments=[1])],
        segments=[{"id": 1, "name": "early", "constraints": [value]}],
    )
    told = api["admin"].post(f"{IMPORT[:-6]}validate", given, format="json").json()
    assert "SDKs cannot read DATE_AFTER 2024-01-01" in told["warnings"][-1]["affectedItems"][0]
    assert api["admin"].post(IMPORT, given, format="json").status_code == 200
    assert Segment.objects.get(name="early").constraints == [value]


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_the_api_refuses_them_and_says_what_is_meant(api, shop, operator, value, intended):
    make_flag("cart")
    path = "/api/admin/projects/shop/features/cart/environments/development/strategies"
    given = {"name": "default", "constraints": [constraint(operator, value)]}
    refused = api["member"].post(path, given, format="json")
    assert refused.status_code == 400
    assert f"{intended} was probably meant" in refused.json()["details"][0]["message"]


@pytest.mark.parametrize(
    ("operator", "value"), [("DATE_AFTER", "yesterday"), ("DATE_AFTER", "2024-13-01"), ("NUM_GT", "abc")]
)
def test_what_nobody_can_read_is_refused(api, shop, operator, value):
    assert suggested_value(operator, value) is None
    refused = api["admin"].post(IMPORT, sent(operator, value), format="json")
    assert refused.status_code == 400


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_what_is_meant_can_be_read(operator, value, intended):
    assert suggested_value(operator, intended) is None
