"""JSON Schemas of payloads: which are accepted, what they refuse in every way of changing a flag, and what checks cost."""

import json
from typing import Any

import pytest
from django.db import transaction

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from importer.apply.undo import undo_import
from importer.models import ImportRun
from projects.flags.copies.move import move_flag
from projects.flags.payloads import rules
from projects.flags.payloads.rules import DIALECT, PayloadCheck, schema_problems
from projects.flags.payloads.stored import check_stored
from projects.models import FlagEnvironment, PayloadSchema, ProjectEnvironment, Strategy
from releases.models import ChangeRequest
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.records import events, refused

JSON = "application/json"
FLAG = "/api/admin/projects/shop/features/cart"
URL = f"{FLAG}/payload-schema"
VARIANTS = f"{FLAG}/environments/production/variants"
SCHEMA = {
    "type": "object",
    "required": ["price"],
    "properties": {
        "price": {"type": "number", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}


def variant(value: Any, name: str = "blue", kind: str = "json") -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {
        "name": name, "weight": 1000, "weightType": "variable", "stickiness": "default",
        "payload": {"type": kind, "value": text},
    }  # fmt: skip


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


@pytest.fixture
def cart(api: Any) -> Any:
    flag = make_flag("cart")
    assert api["member"].put(URL, {"schema": SCHEMA}).status_code == 204
    return flag


def problems_of(value: Any, schema: Any = SCHEMA) -> list[str]:
    return [str(each) for each in PayloadCheck().problems(schema, [variant(value)], "v")]


def test_set_read_and_removed(api: Any, cart: Any) -> None:
    answer = api["reader"].get(URL)
    assert answer.json() == {"schema": SCHEMA}
    refused(api["reader"].put(URL, {"schema": {}}), 403, "NoAccessError")

    assert api["member"].put(URL, {"schema": {}}, headers={"If-Match": answer["ETag"]}).status_code == 204
    refused(api["member"].delete(URL, headers={"If-Match": answer["ETag"]}), 412, "PreconditionFailedError")
    assert api["member"].delete(URL).status_code == 204

    assert api["reader"].get(URL).json() == {"schema": None}
    changes = [(event.before, event.after) for event in events("feature-payload-schema-updated")]
    assert changes == [
        ({"schema": None}, {"schema": SCHEMA}), ({"schema": SCHEMA}, {"schema": {}}), ({"schema": {}}, {"schema": None}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"price": "7"}, "v[blue].payload: /price: '7' is not of type 'number'"),
        ({"price": -1}, "v[blue].payload: /price: -1 is less than the minimum of 0"),
        ({}, "v[blue].payload: the payload: 'price' is a required property"),
        ({"price": 1, "tags": ["a", 2]}, "v[blue].payload: /tags/1: 2 is not of type 'string'"),
        ({"price": 1, "prise": 2}, "v[blue].payload: the payload: has unknown members: prise"),
    ],
)
def test_the_error_names_the_place(value: Any, message: str) -> None:
    assert problems_of(value) == [message]


@pytest.mark.django_db(transaction=True)
def test_variants_of_flags_and_strategies_are_refused(api: Any, cart: Any) -> None:
    record = refused(api["member"].put(VARIANTS, [variant({"price": "7"})]), 400, "ValidationError")
    assert record["details"] == [
        {"path": "cart.production.variants[blue].payload", "message": "/price: '7' is not of type 'number'"}
    ]
    assert api["member"].put(VARIANTS, [variant({"price": 7})]).status_code == 200
    assert api["member"].put(VARIANTS, [variant("any", kind="string")]).status_code == 200

    strategies = f"{FLAG}/environments/production/strategies"
    body = {"name": "default", "variants": [variant({"price": "7"})]}
    record = refused(api["member"].post(strategies, body), 400, "ValidationError")
    assert record["details"][0]["path"] == "cart.production.strategies.variants[blue].payload"
    assert not Strategy.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_schema_that_stored_payloads_do_not_satisfy_is_refused(api: Any) -> None:
    add_strategy(make_flag("cart"), "production", variants=[variant({"price": None})])

    record = refused(api["member"].put(URL, {"schema": SCHEMA}), 400, "ValidationError")

    assert "/price: None is not of type 'number'" in record["message"]
    assert not PayloadSchema.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_imports_and_flags_as_code_are_refused(api: Any, cart: Any) -> None:
    feature = {"name": "cart", "type": "release"}
    strategy = {"name": "default", "featureName": "cart", "variants": [variant({"price": "7"})]}
    body = {
        "project": "shop",
        "environment": "production",
        "data": {
            key: [] for key in ("featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes")
        }
        | {"features": [feature], "featureStrategies": [strategy]},
    }
    planned = api["admin"].post("/api/admin/features-batch/validate", body).json()
    assert "/price: '7' is not of type 'number'" in json.dumps(planned["errors"])
    assert (
        "/price"
        in refused(api["admin"].post("/api/admin/features-batch/import", body), 400, "ValidationError")[
            "message"
        ]
    )

    read = api["admin"].get("/api/admin/flags-as-code", {"project": "shop"}).json()
    read["flags"][0]["flag"]["environments"]["production"] = {
        "enabled": False,
        "variants": [variant({"price": "7"})],
    }
    applied = api["admin"].post("/api/admin/flags-as-code/apply", {"flags": read["flags"]})
    assert "/price: '7' is not of type 'number'" in applied.content.decode()
    assert applied.status_code == 400
    assert not Strategy.objects.exists()
    assert not FlagEnvironment.objects.exclude(variants=[]).exists()


def exported(api: Any, query: str = "?segments=full") -> Any:
    url = f"/api/admin/features-batch/export{query}"
    return api["admin"].post(url, {"environment": "production", "features": ["cart"]}).json()


def imported(api: Any, data: Any, path: str = "import", **changed: Any) -> Any:
    body = {"project": "shop", "environment": "production", "data": data | changed}
    return api["admin"].post(f"/api/admin/features-batch/{path}", json.dumps(body), content_type=JSON)


@pytest.mark.django_db(transaction=True)
def test_exports_and_imports_carry_it(api: Any, cart: Any) -> None:
    assert "payloadSchemas" not in exported(api, query="")
    data = exported(api)
    assert data["payloadSchemas"] == [{"feature": "cart", "schema": SCHEMA}]

    api["member"].delete(URL)
    assert imported(api, data).status_code == 200
    assert PayloadSchema.objects.get().schema == SCHEMA
    (event,) = events("feature-imported")
    assert (event.before.get("payloadSchema"), event.after["payloadSchema"]) == (None, SCHEMA)

    without = {key: value for key, value in data.items() if key != "payloadSchemas"}
    assert imported(api, without).status_code == 200
    assert imported(api, data, payloadSchemas=[{"feature": "cart", "schema": {}}]).status_code == 200
    assert PayloadSchema.objects.get().schema == {}

    add_strategy(cart, "development", variants=[variant({"price": "7"})])
    record = refused(imported(api, data), 400, "ValidationError")
    assert record["details"][0]["path"] == "cart.development.strategies.variants[blue].payload"
    assert PayloadSchema.objects.get().schema == {}
    [error] = imported(api, data, path="validate").json()["errors"]
    assert error["affectedItems"][0].startswith("cart.development.strategies.variants[blue].payload: ")

    assert imported(api, data, payloadSchemas=[{"feature": "cart", "schema": None}]).status_code == 200
    assert not PayloadSchema.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_import_creates_and_undoes_it(api: Any, cart: Any) -> None:
    data = exported(api)
    cart.delete()
    answer = imported(api, data, features=[{"name": "cart", "type": "release"}])
    assert (answer.status_code, PayloadSchema.objects.get().schema) == (200, SCHEMA)
    assert imported(api, data, payloadSchemas=[{"feature": "cart", "schema": {}}]).status_code == 200
    run = ImportRun.objects.order_by("-finished_at").first()
    undo_import(run.pk, caller=Caller.system())
    assert PayloadSchema.objects.get().schema == SCHEMA


@for_each(
    ("schemas", "problem"),
    [
        ([{"feature": "cart", "schema": {"type": "objekt"}}], "data.payloadSchemas[0].schema: cart: must be a JSON Schema"),
        ([{"feature": "cart", "schema": []}], "data.payloadSchemas[0].schema: cart: must be an object"),
        ([{"feature": "cart"}], "data.payloadSchemas[0].schema: cart: is required"),
        ([{"feature": "none", "schema": {}}], "none"),
        ([{"feature": "cart", "schema": nested(300)}], "data.payloadSchemas[0].schema: cart: must be a JSON Schema that is supported (schema: must be JSON, nested at most 30 levels deep"),
    ],
)  # fmt: skip
def test_imported_schemas_that_are_refused(api: Any, cart: Any, schemas: Any, problem: str) -> None:
    record = refused(imported(api, exported(api), payloadSchemas=schemas), 400, "ValidationError")
    assert problem in "; ".join(f"{each['path']}: {each['message']}" for each in record["details"])
    assert PayloadSchema.objects.get().schema == SCHEMA


def test_the_schemas_of_a_body_are_bounded_together(api: Any, cart: Any) -> None:
    schemas = [{"feature": "cart", "schema": {"title": "x" * 60_000}}] * 17
    record = refused(imported(api, exported(api), payloadSchemas=schemas), 400, "ValidationError")
    assert "at most 1,000,000 bytes together" in record["message"]


@pytest.mark.django_db(transaction=True)
def test_flags_as_code_carry_it(api: Any, cart: Any) -> None:
    url = "/api/admin/flags-as-code"
    [entry] = api["admin"].get(url, {"project": "shop"}).json()["flags"]
    assert entry["flag"]["payloadSchema"] == SCHEMA

    entry["flag"]["payloadSchema"] = {"type": "number"}
    planned = api["admin"].post(f"{url}/plan", {"flags": [entry]}).json()
    assert [each["part"] for each in planned["changes"][0]["changes"]] == ["payload schema"]
    entry["flag"]["environments"] = {"production": {"enabled": False, "variants": [variant({"price": 7})]}}
    record = refused(api["admin"].post(f"{url}/apply", {"flags": [entry]}), 400, "ValidationError")
    assert record["details"][0]["path"] == "cart.production.variants[blue].payload"
    entry["flag"]["payloadSchema"] = {"type": "objekt"}
    record = refused(api["admin"].post(f"{url}/apply", {"flags": [entry]}), 400, "ValidationError")
    assert record["details"][0]["path"] == "flags[0].flag.payloadSchema"
    entry["flag"]["payloadSchema"] = nested(300)
    record = refused(
        api["admin"].post(f"{url}/plan", json.dumps({"flags": [entry]}), content_type=JSON),
        400,
        "ValidationError",
    )
    assert "nested at most 30 levels deep" in record["details"][0]["message"]

    entry["flag"] = {"name": "cart"}
    assert api["admin"].post(f"{url}/apply", {"flags": [entry]}).status_code == 200
    assert not PayloadSchema.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_copies_moves_and_reverts(api: Any, browse: Any, cart: Any) -> None:
    assert api["member"].post(f"{FLAG}/clone", {"name": "bag"}).status_code == 201
    assert PayloadSchema.objects.get(flag__name="bag").schema == SCHEMA
    make_project("other")
    move_flag("shop", "bag", "other", caller=Caller.system())
    assert PayloadSchema.objects.get(flag__name="bag").schema == SCHEMA

    api["member"].put(URL, {"schema": {}})
    event = events("feature-payload-schema-updated")[-1]
    assert "Gets its previous payload schema." in page_text(
        browse("member").get(f"/activity/{event.pk}/revert")
    )
    url = f"/api/admin/events/{event.pk}/revert"
    refused(api["reader"].post(url), 403, "NoAccessError")
    add = {"name": "default", "variants": [variant({"price": "7"})]}
    api["member"].post(f"{FLAG}/environments/production/strategies", add)
    assert "/price" in refused(api["member"].post(url), 400, "ValidationError")["message"]
    Strategy.objects.all().delete()
    assert api["member"].post(url).json()["features"][0]["payloadSchema"]
    assert PayloadSchema.objects.get(flag=cart).schema == SCHEMA
    assert "changed since" in refused(api["member"].post(url), 409, "ConflictError")["message"]


@pytest.mark.django_db(transaction=True)
def test_change_requests_are_refused_before_they_are_reviewed(api: Any, cart: Any) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    url = "/api/admin/projects/shop/environments/production/change-requests"
    for action, payload in (
        ("patchVariant", {"variants": [variant({"price": "7"})]}),
        ("addStrategy", {"name": "default", "variants": [variant({"price": "7"})]}),
    ):
        answer = api["admin"].post(url, {"feature": "cart", "action": action, "payload": payload})
        assert "/price: '7' is not of type 'number'" in refused(answer, 400, "ValidationError")["message"]
    refused(api["admin"].put(VARIANTS, [variant({"price": "7"})]), 400, "ValidationError")
    assert not ChangeRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_changes_of_a_project_check_only_the_flags_that_they_change(api: Any, cart: Any) -> None:
    add_strategy(cart, "production", variants=[variant({"price": "7"})])  # not as users can

    assert api["admin"].put("/api/admin/projects/shop", {"name": "Other"}).status_code == 200
    check_stored("shop", (), with_changed=True)
    with transaction.atomic():
        Strategy.objects.update(title="changed")
        with pytest.raises(ValidationError, match="/price"):
            check_stored("shop", (), with_changed=True)


@pytest.mark.django_db(transaction=True)
def test_each_flag_has_its_own_budget(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    items, steps = {"items": {"enum": list(range(100))}}, 3_000
    monkeypatch.setattr(rules, "MAX_STEPS", steps)
    for name in ("cart", "bag"):
        add_strategy(make_flag(name), "production", variants=[variant([99] * 10)])
        url = f"/api/admin/projects/shop/features/{name}/payload-schema"
        assert api["member"].put(url, {"schema": items}).status_code == 204
    check = PayloadCheck()
    assert [*check.problems(items, [variant([99] * 10)], "v")] == []
    assert [*check.problems(items, [variant([99] * 10)], "v")] != []  # one budget is not enough for both

    check_stored("shop", {"cart", "bag"})
    monkeypatch.setattr(rules, "MAX_ALL_STEPS", steps)
    with pytest.raises(
        ValidationError, match=r"production.*checking it and the payloads before it takes more than"
    ):
        check_stored("shop", {"cart", "bag"})


@pytest.mark.django_db(transaction=True)
def test_imports_check_all_flags_within_one_budget_before_they_lock_the_project(
    api: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"f{n}" for n in range(9)]
    states = [
        {"name": "production", "featureName": name, "enabled": False, "variants": [variant(1)]}
        for name in names
    ]
    schemas = [{"feature": name, "schema": doubled({})} for name in names]
    data = {"features": [{"name": name} for name in names], "featureStrategies": [], "tagTypes": []}
    monkeypatch.setattr(rules, "MAX_STEPS", 1_000)
    monkeypatch.setattr(rules, "MAX_ALL_STEPS", 2_500)
    monkeypatch.setattr("importer.apply.execute.lock_projects", None)
    record = refused(
        imported(api, data, featureEnvironments=states, payloadSchemas=schemas), 400, "ValidationError"
    )
    assert [each["path"] for each in record["details"]] == [
        f"f{n}.production.variants[blue].payload" for n in range(3)
    ]
    assert "change fewer flags at once" in record["details"][-1]["message"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "objekt"}, "schema/type: 'objekt' is not valid under any of the given schemas"),
        ({"$ref": "https://example.com/s.json"}, "schema/$ref: must refer to a part of this schema, such as #/$defs/price"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "schema/properties/a/$ref: must refer to a part of this schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "schema/$schema: must be https://json-schema.org/"),
        ({"pattern": "(?=a)"}, "schema/pattern: (?=a) "),
        ({"items": {"unevaluatedItems": False}}, "schema/items/unevaluatedItems: is not supported"),
        ({"enum": ["x" * 70_000]}, "schema: must have at most 64,000 bytes"),
        ({"enum": [0] * 5_000}, "schema: must have at most 5,000 values"),
        ({"patternProperties": {f"a{n}": {"pattern": "b"} for n in range(51)}}, "schema: must have at most 100 patterns"),
        ({"$defs": {"a": {"$anchor": "a"}}, "$ref": "#a"}, "schema/$ref: must refer to a part of this schema"),
        ({"x": {"minLength": "a"}, "$ref": "#/x"}, "schema/$ref: must refer to a part of this schema"),
        ({"items": {"$schema": DIALECT}}, "schema/items/$schema: is only supported at the top"),
        *(({"$schema": other}, "schema/$schema: must be https://json-schema.org/") for other in (5, None, [DIALECT])),
        ({"$ref": "#/$defs/a", "$defs": 5}, "schema/$ref: must refer to a part of this schema"),
        ({"$ref": "#/properties/a", "properties": True}, "schema/$ref: must refer to a part of this schema"),
        (nested(300), "schema: must be JSON, nested at most 30 levels deep"),
    ],
)  # fmt: skip
def test_schemas_that_are_refused(schema: Any, problem: str) -> None:
    (found,) = map(str, schema_problems(schema))
    assert found.startswith(problem)


def test_local_references_and_patterns() -> None:
    schema = {
        "$defs": {"price": {"type": "number"}},
        "properties": {"a": {"$ref": "#/$defs/price"}},
        "patternProperties": {"^x-": {"type": "string", "pattern": "^[a-z]+$"}},
        "additionalProperties": False,
    }
    assert list(schema_problems(schema)) == []
    assert problems_of({"a": 1, "x-y": "abc"}, schema) == []
    assert problems_of({"x-y": "A"}, schema) == ["v[blue].payload: /x-y: 'A' does not match '^[a-z]+$'"]


MEMBERS = {f"{n:x}": 0 for n in range(8_000)}


def doubled(schema: Any, times: int = 40, keyword: str = "allOf") -> dict[str, Any]:
    """A schema that applies another one 2 ** times."""
    twice = {f"s{n}": {keyword: [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(times)}
    return {"$defs": twice | {f"s{times}": schema}, "$ref": "#/$defs/s0"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, {}),
        (doubled({}), {}),
        ({"items": {"enum": list(range(1_000))}}, [999] * 20_000),
        ({"items": {f"unknown{n}": 0 for n in range(4_000)}}, [0] * 20_000),
        ({"patternProperties": {f"{n:x}$": True for n in range(100)}}, MEMBERS),
        ({"patternProperties": {f"{n:x}$": True for n in range(50)}, "additionalProperties": True}, MEMBERS),
        (doubled({"pattern": "a"}, 14), json.dumps("a" * 99_000)),
        (doubled({"items": True}, 8), [0] * 30_000),
        (doubled({"uniqueItems": True}, 14), [MEMBERS]),
        (doubled({"const": "a" * 60_000}, 14), json.dumps("a" * 60_000)),
        (doubled({"minLength": 200_000}, 10, "anyOf"), json.dumps("a" * 99_000)),
    ],
)
def test_costly_checks_end(schema: Any, value: Any) -> None:
    assert list(schema_problems(schema)) == []
    assert problems_of(value, schema) == [
        "v[blue].payload: takes too many steps to check against the payload schema"
    ]


def test_no_part_of_a_schema_selects_a_validator_that_counts_no_steps() -> None:
    schema = {"$schema": DIALECT, "properties": {"a": {"$ref": "#"}}, "items": {"enum": list(range(1_000))}}
    assert list(schema_problems(schema)) == []
    (problem,) = problems_of({"a": [999] * 19_000}, schema)
    assert "takes too many steps" in problem


def test_evil_patterns_and_many_items_are_linear() -> None:
    assert problems_of(json.dumps("a" * 50_000 + "!"), {"pattern": "^(a+)+$"}) != []
    assert problems_of([{} for _ in range(20_000)], {"uniqueItems": True}) == [
        "v[blue].payload: the payload: has items more than once"
    ]


def test_the_page(browse: Any, cart: Any) -> None:
    page = "/projects/shop/features/cart/payload-schema"
    browser = browse("member")
    assert "&quot;minimum&quot;: 0" in browser.get(page).text

    assert "is not valid JSON" in page_text(browser.post(page, {"schema": "{"}))
    assert "must refer to a part of this schema" in page_text(
        browser.post(page, {"schema": '{"$ref": "http://x"}'})
    )
    assert browser.post(page, {"schema": '{"type": "object"}'}).status_code == 302
    assert PayloadSchema.objects.get().schema == {"type": "object"}
    assert browser.post(page, {"schema": ""}).status_code == 302
    assert not PayloadSchema.objects.exists()
    assert browse("reader").get(page).status_code == 403
