"""POST /ofrep/v1/evaluate/flags: all flags, for OpenFeature's web and mobile providers."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.signing import Signer

from playground.engine.evaluator import Evaluation
from projects.models import Flag, FlagEnvironment
from sdk.ofrep import answers, api, change_events
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.ofrep import FLAGS, constraint, rollout, variant

pytestmark = pytest.mark.django_db
PAGE = {"Origin": "https://app.example.com"}


def asked(who: Any, etag: str = "", /, **context: Any) -> Any:
    return who.post(FLAGS, {"context": context}, headers={"If-None-Match": etag} if etag else {})


def flags(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    return {flag["key"]: flag for flag in answer.json()["flags"]}


def test_every_active_flag_of_the_tokens_projects(web: Any, shop: Any) -> None:
    make_flag("on", "default", enabled=True)
    make_flag("off", "default")
    make_flag("blue", "default", enabled=True, variants=[variant("blue", "json", '{"a": 1}')])
    make_flag("archived", "default", archived=True)
    make_flag("there", enabled=True)
    found = flags(asked(web))
    assert {key: (flag["value"], flag["variant"], flag["reason"]) for key, flag in found.items()} == {
        "blue": ({"a": 1}, "blue", "STATIC"),
        "off": (False, "disabled", "DISABLED"),
        "on": (True, "enabled", "STATIC"),
    }
    everywhere = client(make_token("backend", environment="development"))
    assert set(flags(asked(everywhere))) == {"blue", "off", "on", "there"}
    assert flags(asked(client(make_token("backend", projects=[], environment="development")))) == {}


def test_a_slash_at_the_end_is_accepted(web: Any) -> None:
    make_flag("on", "default", enabled=True)
    assert set(web.post(f"{FLAGS}/", {}).json()) == {"flags", "eventStreams"}
    assert web.post(f"{FLAGS}/on/", {}).json()["key"] == "on/"


def test_a_flag_that_fails_does_not_fail_the_others(web: Any) -> None:
    make_flag("by-user", "default", enabled=True, strategies=[rollout(50, "userId")])
    make_flag("odd", "default", enabled=True, variants=[variant("blue", "json", "{")])
    make_flag("on", "default", enabled=True)
    found = flags(asked(web))
    assert {key: flag.get("errorCode") for key, flag in found.items()} == {
        "by-user": "TARGETING_KEY_MISSING",
        "odd": "PARSE_ERROR",
        "on": None,
    }


def test_one_flag_is_answered_as_among_all(web: Any) -> None:
    make_flag("on", "default", enabled=True, strategies=[rollout(50)])
    every = flags(asked(web, targetingKey="2"))["on"]
    assert web.post(f"{FLAGS}/on", {"context": {"targetingKey": "2"}}).json() == every


def test_nothing_has_changed(web: Any) -> None:
    make_flag("on", "default", enabled=True, strategies=[rollout(50)])
    first = asked(web, targetingKey="2")
    etag = first["ETag"]
    assert etag.startswith('"')
    assert first["Cache-Control"] == "no-cache"
    again = asked(web, etag, targetingKey="2")
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    assert asked(web, f'"other", W/{etag}', targetingKey="2").status_code == 304
    assert asked(web, '"other"', targetingKey="2").status_code == 200
    assert asked(web, etag, targetingKey="3").status_code == 200
    backend = client(make_token("backend", projects=["default"], environment="development"))
    assert asked(backend, etag, targetingKey="2").status_code == 200


def test_a_ticket_that_is_void_is_replaced(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers that are answered 304 keep the stream's URL."""
    etag = asked(web)["ETag"]
    monkeypatch.setattr(change_events, "_signer", Signer(key="another", salt="x"))
    assert asked(web, etag).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda: FlagEnvironment.objects.filter(environment="development").update(enabled=False),
        lambda: Flag.objects.update(stale=True),
        lambda: make_flag("new", "default"),
    ],
)
def test_something_has_changed(web: Any, change: Any) -> None:
    make_flag("on", "default", enabled=True)
    etag = asked(web)["ETag"]
    change()
    assert asked(web, etag).status_code == 200


def test_a_change_elsewhere_is_none(web: Any, shop: Any) -> None:
    make_flag("on", "default", enabled=True)
    etag = asked(web)["ETag"]
    make_flag("there", enabled=True)
    assert asked(web, etag).status_code == 304


def test_a_date_that_has_come_is_a_change(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    later = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2027-01-01T00:00:00Z"}
    make_flag("from-2027", "default", enabled=True, strategies=[{"constraints": [later]}])

    def at(year: int, day: int) -> None:
        monkeypatch.setattr(api.timezone, "now", lambda: datetime(year, 1, day, tzinfo=UTC))

    at(2026, 1)
    first = asked(web)
    at(2026, 2)
    assert asked(web, first["ETag"]).status_code == 304
    at(2027, 2)
    changed = asked(web, first["ETag"])
    assert (flags(first)["from-2027"]["value"], flags(changed)["from-2027"]["value"]) == (False, True)


def test_a_random_result_stays_while_nothing_changes(web: Any) -> None:
    make_flag("random", "default", enabled=True, strategies=[rollout(50)])
    assert {asked(web, asked(web)["ETag"]).status_code for _ in range(5)} == {304}


@pytest.mark.parametrize("path", [FLAGS, f"{FLAGS}/on"])
def test_browsers_may_ask_with_a_frontend_token(web: Any, path: str) -> None:
    make_flag("on", "default", enabled=True)
    asks = PAGE | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,if-none-match",
    }
    answer = client().options(path, headers=asks)
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (204, "*")
    assert answer["Access-Control-Allow-Headers"] == "authorization,content-type,if-none-match"
    assert answer["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    for who in (web, client(), client("*:development.wrong"), client(make_token("admin"))):
        answer = who.post(path, {}, headers=PAGE)
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert answer["Access-Control-Expose-Headers"] == "ETag"
    backend = client(make_token("backend", environment="development"))
    assert not backend.post(path, {}, headers=PAGE).has_header("Access-Control-Allow-Origin")


def test_origins_can_be_named(web: Any, settings: Any) -> None:
    settings.FRONTEND_API_ORIGINS = ["https://app.example.com"]
    assert web.post(FLAGS, {}, headers=PAGE)["Access-Control-Allow-Origin"] == "https://app.example.com"
    other = web.post(FLAGS, {}, headers={"Origin": "https://other.example.com"})
    assert not other.has_header("Access-Control-Allow-Origin")


def test_only_the_flag_asked_for_is_evaluated(
    web: Any, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = [{"constraints": [constraint(f"field-{n}", "x")]} for n in range(3)]
    for n, condition in enumerate(conditions):
        make_flag(f"flag-{n}", "default", enabled=True, strategies=[condition])
    evaluations: list[Any] = []

    def noted(*args: Any) -> Any:
        evaluations.append(Evaluation(*args))
        return evaluations[-1]

    monkeypatch.setattr(answers, "Evaluation", noted)
    web.post(f"{FLAGS}/flag-1", {})
    with django_assert_num_queries(2):  # the token, the revisions of its projects
        web.post(f"{FLAGS}/flag-1", {})
    [first, _] = evaluations
    assert [flag.name for flag in first.snapshot.flags] == ["flag-1"]
    assert len(first.values) == 1
