"""A payload that changes is a change: in comparisons, on pages, in imports, for expectations and OpenFeature."""

import csv
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from importer.body.schemas import read_body
from importer.effects import compare_plan, plan_states
from importer.plan.build import plan_import
from playground.comparison.compare import Change, describe_difference, describe_payload
from playground.comparison.documents import MAX_VALUE
from playground.comparison.results import ONE, Answer, Shares
from playground.engine.outcomes import State
from playground.models import SavedContext
from playground.snapshot_cache import load_snapshot_at
from projects.flags.environments.actions import set_variants
from projects.models import Flag, Project
from projects.revision import read_revisions
from sdk.delta.states import Scope
from sdk.ofrep.refetches import State as Events
from tests.support.cast import client, make_token
from tests.support.for_each import for_each
from tests.support.import_bodies import body, strategy, switch
from tests.support.ofrep import FLAGS
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import refused

COMPARE = "/api/admin/playground/compare"
CHECK = "/api/admin/playground/check-expectations"
CONTEXTS = "/api/admin/playground/contexts"
PRODUCTION = {"environment": "production"}
WHO = Caller.system()


def price(value: str, kind: str = "number", name: str = "price") -> dict[str, Any]:
    variant = {"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"}
    return variant | {"payload": {"type": kind, "value": value}}


@pytest.fixture
def fee(shop: Any) -> Flag:
    """On for everyone, with a number."""
    return live_flag("fee", variants=[price("100")])


def compare(api: Any, draft: Any, **members: Any) -> Any:
    to = PRODUCTION | {"draft": {"flag": "fee"} | draft}
    request = {"from": PRODUCTION, "to": to, "contexts": {"synthetic": 10}, "limit": 1} | members
    response = api["viewer"].post(COMPARE, request)
    assert response.status_code == 200, response.content
    return response.json()


@for_each(
    ("variants", "change"),
    [
        ([price("900")], "payload"),
        ([price("100", "string")], "payload"),
        ([price("100") | {"payload": None}], "payload"),
        ([price("100")], "unchanged"),
        ([price("900", name="cost")], "variant"),
    ],
)
def test_comparisons_count_it(api: Any, fee: Flag, variants: Any, change: str) -> None:
    assert compare(api, {"variants": variants})["counts"] == dict.fromkeys(
        ("offToOn", "onToOff", "variant", "payload", "share", "unknown", "unchanged"), 0
    ) | {change: 10}


def test_comparisons_show_it(api: Any, fee: Flag) -> None:
    found = compare(api, {"variants": [price("900")]})
    [example] = found["examples"]
    assert example["change"] == "payload"
    for side, value in (("before", "100"), ("after", "900")):
        answer = {"isEnabled": True, "variant": "price", "payload": {"type": "number", "value": value}}
        assert example[side]["results"] == [answer | {"share": 1}]
        assert found["flags"][0][side] == [answer | {"contexts": 10}]


def test_payloads_of_strategy_variants_and_overrides(api: Any, fee: Flag) -> None:
    def overridden(value: str) -> Any:
        return {"variants": [price(value) | {"overrides": [{"contextName": "userId", "values": ["42"]}]}]}

    def of_strategy(value: str) -> Any:
        return {"strategies": [{"name": "default", "variants": [price(value)]}]}

    for draft in (overridden, of_strategy):
        before = PRODUCTION | {"draft": {"flag": "fee"} | draft("100")}
        contexts = {"explicit": [{"userId": "42"}]}
        found = compare(api, draft("900"), **{"from": before}, contexts=contexts)
        assert found["counts"]["payload"] == 1


def test_long_payloads_are_cut_in_answers(api: Any, fee: Flag) -> None:
    found = compare(api, {"variants": [price("x" * 200_000, "string")]})
    value = found["examples"][0]["after"]["results"][0]["payload"]["value"]
    assert value == "x" * (MAX_VALUE - 1) + "…"


# Words -------------------------------------------------------------------------------------------------------


def shares(*payloads: tuple[str, str] | None) -> Shares:
    return tuple(
        (Answer(State.ON, f"v{n}", payload), ONE / len(payloads)) for n, payload in enumerate(payloads)
    )


def test_words_show_where_long_payloads_differ() -> None:
    assert describe_payload(("number", "900")) == "number 900"
    assert describe_payload(None) == "no payload"
    assert describe_difference(shares(("number", "1")), shares(None)) == ("number 1", "no payload")
    old, new = describe_difference(
        shares(("json", "a" * 500 + "b" * 99)), shares(("json", "a" * 500 + "c" * 99))
    )
    assert old == "…" + "a" * 30 + "b" * 28 + "…"
    assert new == "…" + "a" * 30 + "c" * 28 + "…"


# Pages -------------------------------------------------------------------------------------------------------


def form(value: str) -> dict[str, str]:
    return {
        "v": "0", "v-0-was": "price", "v-0-name": "price", "v-0-percent": "", "v-0-payload-type": "number",
        "v-0-payload": value, "v-0-stickiness": "default", "do": "save",
    }  # fmt: skip


def test_beside_the_form(browse: Any, fee: Flag) -> None:
    url = "/if-saved/projects/shop/features/fee/variants?environmentId=production"
    page = page_text(browse("member").post(url, form("900"), headers={"HX-Request": "true"}))
    assert "10,000 another payload" in page
    assert "On · price · number 100" in page
    assert "On · price · number 900" in page
    assert "No change" in page_text(browse("member").post(url, form("100"), headers={"HX-Request": "true"}))


def other_environment(fee: Flag) -> None:
    fee.environments.update_or_create(
        environment_id="development", defaults={"enabled": True, "variants": [price("900")]}
    )


def test_who_changes(browse: Any, fee: Flag) -> None:
    other_environment(fee)
    url = "/playground/who-changes/?from=production&to=development&users=200"
    page = page_text(browse("viewer").get(url))
    assert "1 of 1 flag changes" in page or "1 of 1 flags change" in page
    assert "200 another payload" in page
    answer = browse("viewer").get(f"{url}&format=csv")
    [row] = csv.DictReader(b"".join(answer.streaming_content).decode().splitlines())
    assert row["Another payload"] == row["Change"] == "200"
    answer = browse("viewer").get(f"{url}&only=fee&change=payload&format=csv")
    first, *_ = csv.DictReader(b"".join(answer.streaming_content).decode().splitlines())
    assert (first["Before"], first["After"]) == ("On · price · number 100", "On · price · number 900")


def test_side_by_side(browse: Any, fee: Flag) -> None:
    other_environment(fee)
    url = "/playground/compare/?a.environment=production&b.environment=development&a.context.userId=7&b.context.userId=7"
    page = page_text(browse("viewer").get(url))
    assert "number 100" in page
    assert "number 900" in page


def test_versions_of_a_flag_say_whom_they_changed(browse: Any, fee: Flag) -> None:
    set_variants("shop", "fee", "production", [price("900")], caller=WHO)
    event = AuditEvent.objects.latest("pk").pk
    page = page_text(browse("viewer").get(f"/projects/shop/features/fee/versions?event={event}"))
    assert "another payload" in page


# Imports -----------------------------------------------------------------------------------------------------


def test_imports(fee: Flag) -> None:
    data = {
        "featureStrategies": [strategy("fee")],
        "featureEnvironments": [switch("fee") | {"variants": [price("900")]}],
    }
    plan = plan_import(read_body(body("fee", **PRODUCTION, **data)), caller=WHO)
    assert plan.can_be_applied, plan.issues
    [found] = compare_plan(plan_states(plan), caller=WHO).flags
    assert found.counts[Change.PAYLOAD] == found.users > 0


# Expectations ------------------------------------------------------------------------------------------------


def expectation(**members: Any) -> dict[str, Any]:
    return {"flag": "fee", "environment": "production", "enabled": True, "variant": None} | members


PINNED = expectation(payload={"type": "number", "value": "100"})


@pytest.fixture
def pinned(fee: Flag) -> SavedContext:
    return SavedContext.objects.create(
        name="Ada", context={"userId": "42"}, project_id="shop", expectations=[PINNED]
    )


def test_it_can_be_expected(api: Any, fee: Flag) -> None:
    given = {"name": "Ada", "project": "shop", "context": {"userId": "42"}, "expectations": [PINNED]}
    response = api["member"].post(CONTEXTS, given)
    assert response.status_code == 201, response.content
    assert response.json()["expectations"] == [PINNED | {"enforcedIn": "shop"}]
    [checked] = api["viewer"].post(CHECK, {}).json()["expectations"]
    assert (checked["met"], checked["payload"]) == (True, PINNED["payload"])
    assert checked["results"][0]["payload"] == PINNED["payload"]
    as_if = PRODUCTION | {"draft": {"flag": "fee", "variants": [price("900")]}}
    [checked] = api["viewer"].post(CHECK, {"asIf": as_if}).json()["expectations"]
    assert (checked["met"], checked["results"][0]["payload"]["value"]) == (False, "900")


@for_each(
    ("members", "path"),
    [
        ({"enabled": False, "payload": {"type": "number", "value": "1"}}, "expectations[0].payload"),
        ({"payload": {"type": "nosuch", "value": "1"}}, "expectations[0].payload.type"),
        ({"payload": {"type": "json", "value": "{"}}, "expectations[0].payload.value"),
        ({"payload": {"type": "string", "value": "x" * 10_001}}, "expectations[0].payload.value"),
        ({"payload": {"type": "string"}}, "expectations[0].payload.value"),
        ({"payload": "100"}, "expectations[0].payload"),
    ],
)
def test_what_cannot_be_expected(api: Any, fee: Flag, members: Any, path: str) -> None:
    given = {"name": "Ada", "project": "shop", "context": {}, "expectations": [expectation(**members)]}
    record = refused(api["member"].post(CONTEXTS, given), 400, "ValidationError")
    assert path in [detail["path"] for detail in record["details"]]
    assert not SavedContext.objects.exists()


def test_a_refusing_project_refuses_another_payload(api: Any, pinned: SavedContext) -> None:
    Project.objects.update(refuse_broken_expectations=True)
    url = "/api/admin/projects/shop/features/fee/environments/production/variants"
    record = api["member"].put(url, [price("900")])
    assert record.status_code == 409, record.content
    assert "expected on, payload number 100" in record.json()["message"] + str(record.json()["details"])
    assert api["member"].put(url, [price("100", name="cost")]).status_code == 200


def test_white_space_in_json_breaks_nothing(api: Any, fee: Flag) -> None:
    set_variants("shop", "fee", "production", [price('{"a": 1}', "json")], caller=WHO)
    SavedContext.objects.create(
        name="Ada", expectations=[expectation(payload={"type": "json", "value": '{ "a":1 }'})]
    )
    assert api["viewer"].post(CHECK, {}).json()["failed"] == 0


def rows(kind: str, value: str) -> dict[str, Any]:
    row = {"flag": "fee", "environment": "production", "enabled": "on", "variant": "", "payload-type": kind}
    given = {f"expectations-{name}": [text, ""] for name, text in (row | {"payload": value}).items()}
    return {"name": "Ada", "context": "{}"} | given


@for_each(
    ("kind", "value", "stored"),
    [
        ("number", "900", {"type": "number", "value": "900"}),
        ("", "VAT", {"type": "string", "value": "VAT"}),
        ("string", "", {"type": "string", "value": ""}),
        ("json", "[1,\r\n2]", {"type": "json", "value": "[1,\n2]"}),
        ("", "", None),
    ],
)
def test_the_form(browse: Any, pinned: SavedContext, kind: str, value: str, stored: Any) -> None:
    url = f"/playground/contexts/{pinned.pk}/"
    assert "<option selected>number</option>" in browse("member").get(url).text
    assert browse("member").post(url, rows(kind, value)).status_code == 302
    pinned.refresh_from_db()
    [found] = pinned.expectations
    assert found.get("payload") == stored


def test_exports_and_imports_keep_it(api: Any, pinned: SavedContext) -> None:
    given = {"environment": "production", "features": ["fee"]}
    export = api["admin"].post("/api/admin/features-batch/export?savedContexts=true", given).json()
    assert export["savedContexts"][0]["expectations"] == [
        {name: value for name, value in PINNED.items() if name != "environment"}
    ]
    SavedContext.objects.all().delete()
    request = {"project": "shop", "environment": "production", "data": export}
    assert api["admin"].post("/api/admin/features-batch/import", request).status_code == 200
    assert SavedContext.objects.get().expectations == [PINNED]


def test_pipelines(capsys: Any, pinned: SavedContext) -> None:
    call_command("check_expectations")
    set_variants("shop", "fee", "production", [price("900")], caller=WHO)
    with pytest.raises((CommandError, SystemExit)):
        call_command("check_expectations")
    assert "is on, variant price, payload number 900" in capsys.readouterr().out


# OpenFeature -------------------------------------------------------------------------------------------------


def version_of(scope: Scope) -> int:
    """By which streams know whether to tell providers."""
    current = read_revisions(scope.projects)
    return Events(sorted(current.items()), load_snapshot_at(current, scope.environment).snapshot, []).version


@pytest.mark.parametrize("value", ["900", "100.0"])
def test_openfeature_follows(fee: Flag, value: str) -> None:
    backend = client(make_token("backend", projects=["shop"], environment="production"))
    scope = Scope("production", ("shop",))
    first, version = backend.post(FLAGS, {}), version_of(scope)
    known = {"If-None-Match": first["ETag"]}
    assert backend.post(FLAGS, {}, headers=known).status_code == 304
    set_variants("shop", "fee", "production", [price(value)], caller=WHO)
    second = backend.post(FLAGS, {}, headers=known)
    assert second.status_code == 200
    assert f'"value":{value}' in second.content.decode()
    assert version_of(scope) != version
