"""/api/frontend evaluates flags on the server, for browsers and apps."""

from typing import Any

import pytest

from projects.models import ApplicationInstance, Segment, UsageHour
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.recorded_sdk import make_recorded_flags, recorded_cases
from tests.support.sdk import metrics, registration

pytestmark = pytest.mark.django_db
NO_VARIANT = {"name": "disabled", "enabled": False, "feature_enabled": True, "featureEnabled": True}


def on(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [toggle["name"] for toggle in answer.json()["toggles"]]


def test_only_flags_that_are_on_are_listed(web) -> None:
    make_flag("on", "default", enabled=True, impression_data=True)
    make_flag("off", "default")
    make_flag("custom", "default", enabled=True, strategies=[{"name": "only-sdks-know"}])
    assert web.get("/api/frontend").json() == {
        "toggles": [{"name": "on", "enabled": True, "variant": NO_VARIANT, "impressionData": True}]
    }


def test_variants_of_strategies_and_of_flags(web) -> None:
    payload = {"type": "string", "value": "#00f"}
    blue = {
        "name": "blue",
        "weight": 1000,
        "weightType": "variable",
        "stickiness": "default",
        "payload": payload,
    }
    make_flag("by-flag", "default", enabled=True, variants=[blue])
    rollout = {"rollout": "100", "stickiness": "userId", "groupId": "x"}
    strategy = {"name": "flexibleRollout", "parameters": rollout, "variants": [blue]}
    make_flag("by-strategy", "default", enabled=True, strategies=[strategy])
    variants = [toggle["variant"] for toggle in web.get("/api/frontend?userId=7").json()["toggles"]]
    expected = {
        "name": "blue",
        "enabled": True,
        "payload": payload,
        "feature_enabled": True,
        "featureEnabled": True,
    }
    assert variants == [expected, expected]


def constrained(name: str, field: str, value: str) -> None:
    constraint = {"contextName": field, "operator": "IN", "values": [value]}
    segment = Segment.objects.create(name=f"segment of {name}", constraints=[constraint])
    make_flag(name, "default", enabled=True, strategies=[{"segments": [segment]}])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("?userId=7", ["user"]),
        ("?properties[country]=NO", ["country"]),
        ("?country=NO", ["country"]),
        ("?country=NO&properties[country]=SE", ["country"]),
        ("?country=SE&properties[country]=NO", []),
        ("?properties[country]=NO&country=SE", []),
        ("?userId=8&properties[userId]=7", []),
        ("?remoteAddress=10.0.0.7", ["address"]),
        ("?userId=7&userId=8", []),
    ],
)
def test_the_context_is_in_the_query(web, query: str, expected: list[str]) -> None:
    constrained("country", "country", "NO")
    constrained("user", "userId", "7")
    constrained("address", "remoteAddress", "10.0.0.7")
    assert on(web.get(f"/api/frontend{query}")) == expected


def test_the_address_is_the_callers_unless_given(web) -> None:
    constrained("local", "remoteAddress", "127.0.0.1")
    assert on(web.get("/api/frontend")) == ["local"]
    assert on(web.get("/api/frontend?remoteAddress=10.0.0.7")) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"context": {"userId": "7", "properties": {"country": "NO"}}}, ["country", "user"]),
        ({"context": {"country": "NO", "properties": {"country": "SE"}}}, ["country"]),
        ({"context": {"country": "SE", "properties": {"country": "NO"}}}, []),
        ({"context": {"userId": "8", "properties": {"userId": "7"}}}, []),
        ({"context": {"userId": 7}}, ["user"]),
        ({"context": {}}, []),
        ({"context": None}, []),
        ({}, []),
        ({"userId": "7"}, []),
    ],
)
def test_the_context_is_in_the_body(web, body: dict, expected: list[str]) -> None:
    constrained("country", "country", "NO")
    constrained("user", "userId", "7")
    assert on(web.post("/api/frontend", body)) == expected


@pytest.mark.parametrize(
    "body", [[], {"context": "x"}, {"context": {"userId": {}}}, {"context": {"properties": 1}}]
)
def test_a_malformed_context_is_refused(web, body: object) -> None:
    answer = web.post("/api/frontend", body)
    assert (answer.status_code, answer.json()["name"]) == (400, "ValidationError")


def test_environment_and_projects_are_the_keys(web, shop) -> None:
    make_flag("here", "default", enabled=True)
    make_flag("there", enabled=True)
    constrained("developing", "environment", "development")
    assert on(web.get("/api/frontend?environment=production&project=shop")) == ["developing", "here"]
    everywhere = client(make_token("frontend", environment="development"))
    assert on(everywhere.get("/api/frontend")) == ["developing", "here", "there"]
    assert on(client(make_token("frontend", environment="production")).get("/api/frontend")) == []
    assert (
        on(client(make_token("frontend", projects=[], environment="development")).get("/api/frontend")) == []
    )


def test_without_a_change_there_is_no_body(web) -> None:
    make_flag("on", "default", enabled=True)
    first = web.get("/api/frontend")
    again = web.get("/api/frontend", headers={"If-None-Match": first["ETag"]})
    assert first["ETag"].startswith("W/")
    assert first["Cache-Control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["", "/client/metrics", "/client/register"])
def test_browsers_may_ask_first_without_a_key(db: None, path: str) -> None:
    headers = {
        "Origin": "https://app.example.com",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization,unleash-appname",
    }
    answer = client().options(f"/api/frontend{path}", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Access-Control-Allow-Headers"] == "authorization,unleash-appname"
    assert "GET" in answer["Access-Control-Allow-Methods"]
    assert "Origin" in answer["Vary"]


def test_browsers_may_read_answers_and_refusals(web) -> None:
    for caller in (web, client()):
        answer = caller.get("/api/frontend", headers={"Origin": "https://app.example.com"})
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert answer["Access-Control-Expose-Headers"] == "ETag"


@pytest.mark.parametrize("path", ["features/on", "all"])
def test_what_is_not_offered(web, path: str) -> None:
    assert web.get(f"/api/frontend/{path}").status_code == 404


def test_metrics_and_registrations_are_kept(web) -> None:
    make_flag("on", "default")
    answer = web.post(
        "/api/frontend/client/register", registration("web", "w-1", sdkVersion="unleash-js:5.0.0")
    )
    assert (answer.status_code, answer.content) == (200, b"OK")
    sdk = {"unleash-sdk": "unleash-js:5.1.0"}
    answer = web.post("/api/frontend/client/metrics", metrics("web", ["on"], "browser"), headers=sdk)
    assert (answer.status_code, answer.content) == (200, b"OK")
    kept = ApplicationInstance.objects.order_by("instance_id")
    assert list(kept.values_list("instance_id", "sdk_version", "sdk_type", "environment")) == [
        ("browser", "unleash-js:5.1.0", "frontend", "development"),
        ("w-1", "unleash-js:5.0.0", "frontend", "development"),
    ]
    assert UsageHour.objects.get().yes == 3


def test_malformed_metrics_are_refused(web) -> None:
    answer = web.post("/api/frontend/client/metrics", {"bucket": {}})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "appName"


RECORDED = {
    name: case
    for name, case in recorded_cases("/api/frontend").items()
    if case["path"].split("?")[0] == "/api/frontend" and "answer" in case
}


@pytest.mark.parametrize("name", RECORDED)
def test_answers_equal_the_recorded_ones(web, name) -> None:
    """The reference's answers for the flags of its recording, in whatever order."""
    make_recorded_flags()
    case = RECORDED[name]
    if case["method"] == "POST":
        answer = web.post(case["path"], case.get("body") or {})
    else:
        answer = web.get(case["path"])
    expected = sorted(case["answer"]["toggles"], key=lambda toggle: toggle["name"])
    assert answer.json()["toggles"] == expected
