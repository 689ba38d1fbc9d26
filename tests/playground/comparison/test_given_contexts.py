"""The contexts of a comparison: given as JSON or CSV, saved, or made, with fields that all of them have."""

from typing import Any

import pytest

from playground.models import SavedContext
from projects.models import ContextField, Flag
from tests.support.flags import depend
from tests.support.for_each import for_each
from tests.support.import_bodies import body, strategy, switch
from tests.support.playground import live_flag
from tests.support.records import refused

COMPARE = "/api/admin/playground/compare"
IMPORT = "/api/admin/features-batch/compare"
IN_GERMANY = {"contextName": "country", "operator": "IN", "values": ["DE"]}


def rollout(percent: int, *constraints: dict[str, Any]) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "userId", "groupId": "cart"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": list(constraints)}


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for a quarter of the users in Germany and Norway."""
    ContextField.objects.create(name="country")
    places = IN_GERMANY | {"values": ["DE", "NO"]}
    return live_flag("cart", strategies=[rollout(25, places)])


def by_draft(contexts: Any, **draft: Any) -> tuple[str, dict[str, Any]]:
    """Half of the users in Germany, a quarter of those in Norway."""
    strategies = [rollout(50, IN_GERMANY), rollout(25, IN_GERMANY | {"values": ["NO"]})]
    draft = {"flag": "cart", "strategies": strategies} | draft
    place = {"environment": "production"}
    return COMPARE, {"from": place, "to": place | {"draft": draft}, "flag": "cart", "contexts": contexts}


def by_import(contexts: Any) -> tuple[str, dict[str, Any]]:
    listed = [
        strategy("cart", **rollout(50, IN_GERMANY)),
        strategy("cart", **rollout(25, IN_GERMANY | {"values": ["NO"]})),
    ]
    data = {"featureStrategies": listed, "featureEnvironments": [switch("cart", True)]}
    return IMPORT, body("cart", environment="production", **data) | {"contexts": contexts}


EITHER = pytest.mark.parametrize("by", [by_draft, by_import])


def answered(api: Any, asked: tuple[str, Any]) -> Any:
    response = api["viewer"].post(*asked)
    assert response.status_code == 200, response.content
    return response.json()


@EITHER
def test_fields_that_all_made_contexts_have(api, cart, by):
    """A quarter of the German users change, of all users a third of that; of the Norwegian ones nobody."""
    german, all_users, norwegian = (
        answered(api, by({"synthetic": 2000} | fixed))
        for fixed in ({"fixed": {"country": "DE"}}, {}, {"fixed": {"properties": {"country": "NO"}}})
    )
    assert german["contexts"] == 2000
    assert 440 < german["people"] < 560
    assert {example["context"]["country"] for example in german["examples"]} == {"DE"}
    assert 120 < all_users["people"] < 220
    assert norwegian["people"] == 0
    made = answered(api, by({"generated": True, "fixed": {"country": "DE"}}))
    assert {example["context"]["country"] for example in made["examples"]} == {"DE"}


@EITHER
def test_rows_of_a_file(api, cart, by):
    rows = "".join(f"user-{n};DE\n" for n in range(400)) + "user-1;NO\nuser-2;\n"
    found = answered(api, by({"csv": f"userId;country\n{rows}"}))
    assert found["contexts"] == 402
    assert 70 < found["people"] < 130
    assert answered(api, by({"csv": "userId,properties.plan\n7,pro\n"}))["people"] == 0


@EITHER
def test_a_file_of_as_many_contexts_as_are_taken(api, cart, by):
    rows = "".join(f"{n:036},DE\n" for n in range(10_000))
    assert answered(api, by({"csv": f"userId,country\n{rows}"}))["contexts"] == 10_000
    record = refused(
        api["viewer"].post(*by({"csv": f"userId,country\n{rows}7,DE\n"})), 400, "ValidationError"
    )
    assert "at most 10,000 contexts" in record["message"]


@EITHER
def test_explicit_and_saved_contexts(api, cart, by):
    SavedContext.objects.create(name="Ada", context={"userId": "7", "country": "DE"})
    explicit = [{"userId": str(n), "country": "DE"} for n in range(200)]
    found = answered(api, by({"explicit": explicit, "saved": ["Ada"]}))
    assert found["contexts"] == 201
    assert 30 < found["people"] < 70


@EITHER
@for_each(
    ("contexts", "path"),
    [
        ({}, "contexts"),
        ({"explicit": {}}, "contexts.explicit"),
        ({"explicit": [{"userId": []}]}, "contexts.explicit[0].userId"),
        ({"synthetic": 0}, "contexts.synthetic"),
        ({"synthetic": 1, "fixed": "DE"}, "contexts.fixed"),
        ({"synthetic": 1, "fixed": {"userId": {}}}, "contexts.fixed.userId"),
        ({"saved": ["Nobody"]}, "contexts.saved[0]"),
        ({"csv": ""}, "contexts.csv"),
        ({"csv": "userId,plan\n7,pro\n"}, "contexts.csv, row 1, column 2"),
        ({"csv": "userId,country\n7\n"}, "contexts.csv, row 2"),
        ({"csv": "userId\n" + "7\n" * 10_001}, "contexts.csv"),
        ({"country": "DE"}, "contexts.country"),
    ],
)
def test_what_is_refused(api, cart, by, contexts, path):
    record = refused(api["viewer"].post(*by(contexts)), 400, "ValidationError")
    assert path in [problem["path"] for problem in record["details"]], record


def test_contexts_of_an_import_are_named_once(api, cart):
    url, sent = by_import({"synthetic": 10})
    record = refused(api["viewer"].post(f"{url}?synthetic=20", sent), 400, "ValidationError")
    assert record["details"][0]["path"] == "synthetic"
    assert answered(api, (f"{url}?limit=0", sent))["examples"] == []
    for odd in (None, [], "all"):
        refused(api["viewer"].post(url, sent | {"contexts": odd}), 400, "ValidationError")


def test_people_are_counted_once(api, cart):
    """Not once for each flag that changes for them."""
    depend(live_flag("child", strategies=[{"name": "default"}]), cart)
    found = answered(api, by_draft({"synthetic": 400, "fixed": {"country": "DE"}}))
    assert [flag["name"] for flag in found["flags"]] == ["cart", "child"]
    assert found["counts"]["offToOn"] == 2 * found["people"]


def test_flags_that_depend_on_a_named_flag_change_with_it(api, cart):
    depend(live_flag("child"), cart)
    live_flag("other")
    found = answered(api, by_draft({"explicit": [{"country": "DE"}]}, enabled=False))
    assert [flag["name"] for flag in found["flags"]] == ["cart"]
    found = answered(api, by_draft({"synthetic": 100, "fixed": {"country": "DE"}}, enabled=False))
    assert [flag["name"] for flag in found["flags"]] == ["cart", "child"]


def test_flags_that_depended_on_it_at_a_moment(api, cart, django_assert_max_num_queries):
    depend(live_flag("child"), cart)
    found = answered(api, (COMPARE, past("2026-01-01T00:00:00Z")))
    assert {flag["name"] for flag in found["flags"]} <= {"cart", "child"}


def past(moment: str) -> dict[str, Any]:
    now = {"environment": "production"}
    return {"from": now | {"at": moment}, "to": now, "flag": "cart", "contexts": {"synthetic": 10}}
