"""POST /ofrep/v1/evaluate/flags/{key}: one flag for OpenFeature's server providers."""

from typing import Any

import pytest

from projects.models import Segment
from tests.support.cast import client, make_token
from tests.support.flags import depend, make_flag
from tests.support.ofrep import FLAGS, constraint, rollout, variant

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(db: None) -> Any:
    return client(make_token("backend", projects=["default"], environment="development"))


def asked(who: Any, key: str, **context: Any) -> Any:
    return who.post(f"{FLAGS}/{key}", {"context": context})


def result(who: Any, key: str, **context: Any) -> tuple[Any, str, str]:
    """The value, the variant and the reason."""
    answer = asked(who, key, **context)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["key"] == key
    return found["value"], found["variant"], found["reason"]


ON, OFF = (True, "enabled"), (False, "disabled")


@pytest.mark.parametrize(
    ("strategies", "given", "expected"),
    [
        ([], {}, (*ON, "STATIC")),
        ([{}], {}, (*ON, "STATIC")),
        ([{"disabled": True}], {}, (*OFF, "STATIC")),
        ([rollout(100)], {}, (*ON, "STATIC")),
        ([rollout(0)], {"targetingKey": "7"}, (*OFF, "STATIC")),
        ([rollout(100, "userId")], {"targetingKey": "7"}, (*ON, "TARGETING_MATCH")),
        ([rollout(100, "tenant")], {}, (*OFF, "TARGETING_MATCH")),
        ([rollout(50)], {"targetingKey": "2"}, (*ON, "SPLIT")),
        ([rollout(50)], {"targetingKey": "1"}, (*OFF, "SPLIT")),
        ([{"constraints": [constraint("country", "NO")]}], {"country": "NO"}, (*ON, "TARGETING_MATCH")),
        ([{"constraints": [constraint("country", "NO")]}], {"country": "SE"}, (*OFF, "TARGETING_MATCH")),
        ([{"constraints": [constraint("plan", "1")]}, {}], {}, (*ON, "TARGETING_MATCH")),
        ([{"name": "only-sdks-know"}], {}, (*OFF, "UNKNOWN")),
    ],
)
def test_a_flag_without_payload_is_boolean(
    server: Any, strategies: list[Any], given: Any, expected: Any
) -> None:
    make_flag("flag", "default", enabled=True, strategies=strategies)
    assert result(server, "flag", **given) == expected


def test_a_flag_that_is_off_is_disabled(server: Any) -> None:
    make_flag("flag", "default", strategies=[rollout(50, "userId")])
    assert result(server, "flag") == (*OFF, "DISABLED")


def test_a_parent_decides(server: Any) -> None:
    parent, child = (
        make_flag(name, "default", enabled=name == "child", strategies=[{}]) for name in ("parent", "child")
    )
    depend(child, parent)
    assert result(server, "child") == (*OFF, "TARGETING_MATCH")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "#00f", "#00f"),
        ("csv", "a,b", "a,b"),
        ("json", '{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
        ("json", "[1]", [1]),
        ("number", "3", 3),
        ("number", "3.0", 3.0),
        ("number", " 1e3 ", 1000.0),
        ("number", "+.5", 0.5),
        ("number", "12345678901234567890123", 12345678901234567890123),
    ],
)
def test_payloads_are_typed(server: Any, kind: str, text: str, value: Any) -> None:
    make_flag("flag", "default", enabled=True, variants=[variant("blue", kind, text)])
    found = result(server, "flag")
    assert found == (value, "blue", "STATIC")
    assert type(found[0]) is type(value)


@pytest.mark.parametrize(("kind", "text"), [("json", "{"), ("number", "ten"), ("number", "1e999")])
def test_a_payload_that_is_not_of_its_type(server: Any, kind: str, text: str) -> None:
    make_flag("flag", "default", enabled=True, variants=[variant("blue", kind, text)])
    answer = asked(server, "flag")
    assert (answer.status_code, answer.json()["key"], answer.json()["errorCode"]) == (
        400,
        "flag",
        "PARSE_ERROR",
    )


def test_a_variant_without_a_payload_is_named(server: Any) -> None:
    make_flag("flag", "default", enabled=True, variants=[variant("blue")])
    assert result(server, "flag") == (True, "blue", "STATIC")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("string", "b", "b"), ("csv", "a,b", "a,b"), ("json", "{}", {}), ("number", "5", 5)],
)
def test_without_a_payload_the_value_is_whether_the_flag_is_on(
    server: Any, kind: str, text: str, value: Any
) -> None:
    make_flags_with_a_payload(kind, text)
    assert result(server, "off") == (False, "disabled", "DISABLED")
    assert result(server, "bare") == (True, "control", "STATIC")
    assert result(server, "strategy", country="NO") == (value, "blue", "TARGETING_MATCH")
    assert result(server, "strategy") == (True, "enabled", "TARGETING_MATCH")


def make_flags_with_a_payload(kind: str, text: str) -> None:
    """Flags with a variant that has a payload: one is off, one gives another variant, one's variant is for Norway."""
    blue = variant("blue", kind, text)
    make_flag("off", "default", variants=[blue])
    make_flag("bare", "default", enabled=True, variants=[variant("control"), blue | {"weight": 0}])
    only_norway = {"constraints": [constraint("country", "NO")], "variants": [blue]}
    make_flag("strategy", "default", enabled=True, strategies=[rollout(100) | only_norway, {}])


def test_variants_by_weight_are_a_split(server: Any) -> None:
    halves = [variant("a", "string", "A", 500), variant("b", "string", "B", 500)]
    make_flag("flag", "default", enabled=True, variants=halves)
    make_flag("strategy", "default", enabled=True, strategies=[rollout(100, variants=halves)])
    for name in ("flag", "strategy"):
        value, chosen, reason = result(server, name, targetingKey="7")
        assert (value, reason) == (chosen.upper(), "SPLIT")


def test_the_metadata_say_why(server: Any) -> None:
    make_flag("flag", "default", enabled=True, stale=True, strategies=[rollout(50)])
    found = asked(server, "flag", targetingKey="2").json()["metadata"]
    assert found == {
        "why": "userId 2 is in bucket 4, 50 % rollout",
        "project": "default",
        "stale": True,
        "bucket": 4,
    }


def test_browsers_are_told_no_definitions(server: Any, web: Any) -> None:
    """The token of a page is known to everybody; a condition may hold other users' names."""
    make_flag(
        "flag", "default", enabled=True, strategies=[{"constraints": [constraint("userId", "ann@x.io")]}]
    )
    make_flag("rollout", "default", enabled=True, strategies=[rollout(50)])
    make_flag("off", "default")
    assert "ann@x.io" in asked(server, "flag", targetingKey="2").content.decode()
    answers = [asked(web, name, targetingKey="2").json() for name in ("flag", "rollout", "off")]
    assert [answer["metadata"]["why"] for answer in answers] == [
        "Its conditions do not hold",
        "A percentage or the weights of variants decided",
        "Switched off in development",
    ]


def test_a_random_result_says_so(server: Any) -> None:
    make_flag("rollout", "default", enabled=True, strategies=[rollout(50)])
    halves = [variant("a", weight=500), variant("b", weight=500)]
    make_flag("variants", "default", enabled=True, variants=halves)
    for name in ("rollout", "variants"):
        found = asked(server, name).json()
        assert (found["reason"], found["metadata"]["random"]) == ("SPLIT", True)
        assert "bucket" not in found["metadata"]
        assert "random" not in asked(server, name, targetingKey="7").json()["metadata"]


def test_the_targeting_key_is_needed_only_by_rollouts_by_user(server: Any) -> None:
    make_flag("by-user", "default", enabled=True, strategies=[rollout(50, "userId")])
    norway = {"constraints": [constraint("country", "NO")]}
    make_flag("condition", "default", enabled=True, strategies=[rollout(50, "userId", **norway)])
    make_flag("also", "default", enabled=True, strategies=[rollout(50, "userId"), {}])
    depend(
        make_flag("child", "default", enabled=True, strategies=[{}]),
        make_flag("p", "default", enabled=True, strategies=[rollout(99, "userId")]),
    )
    for name in ("by-user", "child"):
        answer = asked(server, name)
        assert (answer.status_code, answer.json()) == (
            400,
            {
                "key": name,
                "errorCode": "TARGETING_KEY_MISSING",
                "errorDetails": f"The rollout of flag {name} is by userId: the context needs a targetingKey.",
            },
        )
        assert asked(server, name, targetingKey="").status_code == 400
        assert asked(server, name, userId=7).status_code == 200
    assert result(server, "condition", country="SE") == (*OFF, "TARGETING_MATCH")
    assert result(server, "also") == (*ON, "TARGETING_MATCH")


@pytest.mark.parametrize(
    ("given", "is_on"),
    [
        ({"targetingKey": "7"}, "user"),
        ({"targetingKey": 7, "userId": "8"}, "user"),
        ({"userId": "7"}, "user"),
        ({"sessionId": "7"}, "session"),
        ({"remoteAddress": "10.0.0.7"}, "address"),
        ({}, "local"),
        ({"age": 41.0}, "age"),
        ({"properties": {"age": "41"}}, "age"),
        ({"beta": True, "address": {"city": "Oslo"}, "groups": ["a"]}, "beta"),
        ({"environment": "production", "appName": "shop"}, "app"),
        ({"currentTime": "2030-01-02T00:00:00Z"}, "late"),
    ],
)
def test_context_members_become_fields(server: Any, given: Any, is_on: str) -> None:
    conditions = {
        "user": constraint("userId", "7"),
        "session": constraint("sessionId", "7"),
        "address": constraint("remoteAddress", "10.0.0.7"),
        "local": constraint("remoteAddress", "127.0.0.1"),
        "age": {"contextName": "age", "operator": "NUM_GT", "value": "40"},
        "beta": constraint("beta", "true"),
        "app": constraint("appName", "shop"),
        "late": {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2030-01-01T00:00:00Z"},
        "environment": constraint("environment", "production"),
    }
    for name, condition in conditions.items():
        segment = Segment.objects.create(name=name, constraints=[condition])
        make_flag(name, "default", enabled=True, strategies=[{"segments": [segment]}])
    on = {name for name in conditions if result(server, name, **given)[0]}
    assert on - {"local"} | ({"local"} & {is_on}) == {is_on}


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"{", "PARSE_ERROR"),
        (b"[]", "PARSE_ERROR"),
        (b'"x"', "PARSE_ERROR"),
        (b'{"context": "x"}', "INVALID_CONTEXT"),
        (b'{"context": []}', "INVALID_CONTEXT"),
        (b'{"context": {"targetingKey": {}}}', "INVALID_CONTEXT"),
        (b'{"context": {"sessionId": []}}', "INVALID_CONTEXT"),
        (b'{"context": {"currentTime": "soon"}}', "INVALID_CONTEXT"),
        (b'{"context": {"currentTime": "soon", "userId": {}}}', "INVALID_CONTEXT"),
    ],
)
def test_bodies_that_are_refused(server: Any, sent: bytes, code: str) -> None:
    make_flag("flag", "default", enabled=True)
    for path, key in ((f"{FLAGS}/flag", "flag"), (FLAGS, None)):
        answer = server.post(path, sent, content_type="application/json")
        assert answer.status_code == 400
        found = answer.json()
        assert (found["errorCode"], found.get("key")) == (code, key)
        assert found["errorDetails"]


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", "application/json"),
        (b"", ""),
        (b"{}", "text/plain"),
        (b"null", "application/json"),
        (b'{"context": null}', "application/json; charset=utf-8"),
        (b'{"context": {"targetingKey": null, "properties": 5}}', "application/json"),
        (b'{"other": 1}', "application/json"),
    ],
)
def test_less_than_the_schema_is_accepted(server: Any, sent: bytes, kind: str) -> None:
    make_flag("flag", "default", enabled=True)
    for path in (f"{FLAGS}/flag", FLAGS):
        answer = server.post(path, sent, content_type=kind)
        assert answer.status_code == 200, answer.content


@pytest.mark.parametrize("key", ["unknown", "archived", "there", "a/b", "%C3%A9"])
def test_unknown_flags_are_not_found(server: Any, shop: Any, key: str) -> None:
    make_flag("archived", "default", enabled=True, archived=True)
    make_flag("there", enabled=True)
    answer = asked(server, key)
    assert (answer.status_code, answer.json()["errorCode"]) == (404, "FLAG_NOT_FOUND")
    assert answer.json()["key"] == key.replace("%C3%A9", "é")


@pytest.mark.parametrize("header", ["HTTP_AUTHORIZATION", "HTTP_X_API_KEY"])
@pytest.mark.parametrize("kind", ["backend", "frontend"])
def test_tokens_are_accepted_in_both_headers(db: None, header: str, kind: str) -> None:
    make_flag("flag", "default", enabled=True)
    secret = make_token(kind, environment="development")
    given = f"Bearer {secret}" if header == "HTTP_AUTHORIZATION" else secret
    who = client()
    who.credentials(**{header: given})
    assert result(who, "flag") == (*ON, "STATIC")
    assert client(secret).get("/api/client/features").status_code == (200 if kind == "backend" else 403)
    who.credentials(**{header: given + "x"})
    refused = asked(who, "flag")
    assert (refused.status_code, refused.json()["errorCode"]) == (401, "GENERAL")


def test_an_api_key_header_is_no_token_elsewhere(db: None) -> None:
    who = client()
    who.credentials(HTTP_X_API_KEY=make_token("backend", environment="development"))
    assert who.get("/api/client/features").status_code == 401


def test_refusals_have_the_protocols_form(db: None, server: Any) -> None:
    nobody, admin = client(), client(make_token("admin"))
    for who, status in ((nobody, 401), (admin, 403)):
        answer = asked(who, "flag")
        assert (answer.status_code, answer.json()["errorCode"]) == (status, "GENERAL")
        assert answer.json()["errorDetails"]
    assert server.get(FLAGS).json()["errorCode"] == "GENERAL"
    large = server.post(FLAGS, b"x" * 1_000_001, content_type="application/json")
    assert (large.status_code, large.json()["errorCode"]) == (413, "GENERAL")
    unknown = server.get("/ofrep/v1/configuration")
    assert (unknown.status_code, unknown.json()["errorCode"]) == (404, "GENERAL")
