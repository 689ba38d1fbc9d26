"""Numbers, dates and payloads that SDKs cannot read: imports and the API take them unchanged, with a warning."""

import json

import pytest

from playground.engine.operators import suggest_value
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
    ("DATE_AFTER", "2022-01-29T10:00Z", "2022-01-29T10:00:00.000Z"),
    ("DATE_AFTER", "2022-01-29T10:00:00.5+01:00", "2022-01-29T09:00:00.500Z"),
    ("DATE_AFTER", "2022-01-29t10:00:00z", "2022-01-29T10:00:00.000Z"),
    ("DATE_AFTER", "2022-01-29T24:00:00Z", "2022-01-30T00:00:00.000Z"),
    ("DATE_AFTER", "2022-06-31", "2022-07-01T00:00:00.000Z"),
    ("DATE_AFTER", "2022-1-29", "2022-01-29T00:00:00.000Z"),
    ("DATE_AFTER", "01/29/2022, 10:00:00 PM", "2022-01-29T22:00:00.000Z"),
    ("DATE_AFTER", "Saturday, January 29, 2022", "2022-01-29T00:00:00.000Z"),
    ("DATE_AFTER", "0", "1970-01-01T00:00:00.000Z"),
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
    document = sent(operator, value)

    validation = api["admin"].post(f"{IMPORT[:-6]}validate", document).json()
    assert validation["errors"] == []
    [note] = validation["warnings"][-1]["affectedItems"]
    assert note.startswith(f"cart: SDKs cannot read {operator} {value} and never match it; {intended} was")
    assert "data.featureStrategies[0].constraints[0].value" in note

    assert api["admin"].post(IMPORT, document).status_code == 200
    assert Strategy.objects.get(flag__name="cart").constraints == [constraint(operator, value)]


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_the_playground_says_the_same(api, shop, operator, value, intended):
    document = sent(operator, value)
    document["data"]["featureEnvironments"] = [{"name": "cart", "featureName": "cart", "enabled": True}]
    api["admin"].post(IMPORT, document)
    query = {"environment": "development", "projects": ["shop"], "context": {"age": "1"}}

    [flag] = api["admin"].post("/api/admin/playground", query).json()["features"]

    assert flag["isEnabled"] is False
    assert f"; SDKs never match it, {intended} was probably meant" in flag["reason"]


def test_in_a_segment_too(api, shop):
    value = constraint("DATE_AFTER", "2024-01-01")
    document = body(
        "cart",
        featureStrategies=[strategy("cart", segments=[1])],
        segments=[{"id": 1, "name": "early", "constraints": [value]}],
    )
    validation = api["admin"].post(f"{IMPORT[:-6]}validate", document).json()
    assert "SDKs cannot read DATE_AFTER 2024-01-01" in validation["warnings"][-1]["affectedItems"][0]
    assert api["admin"].post(IMPORT, document).status_code == 200
    assert Segment.objects.get(name="early").constraints == [value]


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_the_api_takes_them_unchanged_and_warns(api, shop, operator, value, intended):
    make_flag("cart")
    path = "/api/admin/projects/shop/features/cart/environments/development/strategies"
    strategy = {"name": "default", "constraints": [constraint(operator, value)]}
    answer = api["member"].post(path, strategy)
    assert answer.status_code == 200
    assert answer.json()["constraints"] == strategy["constraints"] == Strategy.objects.get().constraints
    [warning] = json.loads(answer["X-Unreadable-Values"])
    assert warning["path"] == "constraints[0].value"
    assert f"{intended} was probably meant" in warning["message"]
    kept = api["member"].put(f"{path}/{answer.json()['id']}", {"title": "x"})
    assert kept.json()["constraints"] == strategy["constraints"]
    assert "X-Unreadable-Values" in kept


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_the_api_takes_them_in_segments(api, shop, operator, value, intended):
    segment = {"name": "early", "constraints": [constraint(operator, value)]}
    answer = api["editor"].post("/api/admin/segments", segment)
    assert (answer.status_code, answer.json()["constraints"]) == (201, segment["constraints"])
    path = f"/api/admin/segments/{answer.json()['id']}"
    changed = api["editor"].put(path, segment | {"name": "late"})
    assert changed.status_code == 204
    for response in (answer, changed):
        assert intended in response["X-Unreadable-Values"]


def test_readable_values_have_no_header(api, shop):
    segment = {"name": "early", "constraints": [constraint("DATE_AFTER", "2024-01-01T00:00:00Z")]}
    assert "X-Unreadable-Values" not in api["editor"].post("/api/admin/segments", segment)


def test_the_header_is_ascii_and_short(api, shop):
    values = [constraint("DATE_AFTER", "2024-01-01") | {"contextName": "größe"} for _ in range(30)]
    many = [{"name": "default", "constraints": values, "title": "ü"}] * 5
    make_flag("cart")
    path = "/api/admin/projects/shop/features/cart/environments/development/strategies"
    answer = api["member"].post(path, many[0])
    text = answer["X-Unreadable-Values"]
    assert text.isascii()
    assert len(text) <= 4_000
    assert json.loads(text)[-1]["message"].endswith(" more")


def test_a_refused_request_has_no_header_and_stores_nothing(api, shop):
    invalid = {
        "name": "x",
        "constraints": [constraint("DATE_AFTER", "2024-01-01"), constraint("NUM_GT", "abc")],
    }
    answer = api["editor"].post("/api/admin/segments", invalid)
    assert answer.status_code == 400
    assert [problem["path"] for problem in answer.json()["details"]] == ["constraints[1].value"]
    assert "X-Unreadable-Values" not in answer
    assert not Segment.objects.exists()


def test_a_validated_constraint_gets_the_warning(api, shop):
    answer = api["viewer"].post("/api/admin/constraints/validate", constraint("DATE_AFTER", "2024-01-01"))
    assert answer.status_code == 204
    assert "2024-01-01T00:00:00.000Z was probably meant" in answer["X-Unreadable-Values"]


def test_a_payload_that_is_no_number(api, shop):
    flag = make_flag("cart")
    variant = {
        "name": "a",
        "weight": 1000,
        "weightType": "variable",
        "payload": {"type": "number", "value": "ten"},
    }
    path = "/api/admin/projects/shop/features/cart/environments/development/variants"
    answer = api["member"].put(path, [variant])
    assert answer.status_code == 200
    assert "SDKs cannot read ten as a number" in answer["X-Unreadable-Values"]
    assert flag.environments.get(environment="development").variants[0]["payload"] == variant["payload"]
    strategies = [strategy("cart", variants=[variant | {"stickiness": "default"}])]
    environments = [{"name": "cart", "featureName": "cart", "enabled": True, "variants": [variant]}]
    document = body("cart", featureStrategies=strategies, featureEnvironments=environments)
    validation = api["admin"].post(f"{IMPORT[:-6]}validate", document).json()
    assert validation["errors"] == []
    assert (
        len(
            [
                note
                for warning in validation["warnings"]
                for note in warning["affectedItems"]
                if "as a number" in note
            ]
        )
        == 2
    )
    assert api["admin"].post(IMPORT, document).status_code == 200


@pytest.mark.parametrize("switch", ["caseInsensitive", "inverted"])
def test_a_switch_of_a_constraint_may_be_null(api, shop, switch):
    nullable = {"contextName": "userId", "operator": "IN", "values": ["1"], switch: None}
    answer = api["editor"].post("/api/admin/segments", {"name": "x", "constraints": [nullable]})
    assert answer.status_code == 201
    assert switch not in answer.json()["constraints"][0]


def test_a_default_strategy_takes_them(api, shop):
    strategy = {"name": "flexibleRollout", "constraints": [constraint("DATE_AFTER", "2024-01-01")]}
    path = "/api/admin/projects/shop/environments/development/default-strategy"
    answer = api["owner"].post(path, strategy)
    assert answer.status_code == 200
    assert "X-Unreadable-Values" in answer


@pytest.mark.parametrize(
    ("operator", "value"), [("DATE_AFTER", "yesterday"), ("DATE_AFTER", "2024-13-01"), ("NUM_GT", "abc")]
)
def test_what_nobody_can_read_is_refused(api, shop, operator, value):
    assert suggest_value(operator, value) is None
    refused = api["admin"].post(IMPORT, sent(operator, value))
    assert refused.status_code == 400


@pytest.mark.parametrize(("operator", "value", "intended"), VALUES)
def test_what_is_meant_can_be_read(operator, value, intended):
    assert suggest_value(operator, intended) is None
