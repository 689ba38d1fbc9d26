"""Which change did this: changes ranked by who noticed them, in runs, the API and the page."""

import csv
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from random import Random
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.engine.context import Context, format_time
from playground.engine.evaluator import evaluate
from playground.models import UserRun
from playground.outcomes import runs
from playground.outcomes.history import Sight, Window
from playground.outcomes.incident import Users, find_cause
from playground.saved_contexts.expectations import compile_flags
from playground.user_runs import worker
from playground.user_runs.file import keep_own_users
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from projects.history.definitions_at import flags_then
from projects.models import Strategy, VersionsSince
from projects.segments.actions import create_segment, update_segment
from projects.strategies import actions as strategies
from tests.support.cast import make_project
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
URL = "/api/admin/playground/incidents"
RUNS = "/api/admin/playground/users"
PAGE = "/playground/incidents/"
WHO = Caller.system()
START = timezone.now().replace(microsecond=0) - timedelta(days=1)
Clock = Callable[[int], None]
USERS = [str(number) for number in range(1, 401)]


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "start", lambda: None)


@pytest.fixture
def clock(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return lambda minutes: monkeypatch.setattr(timezone, "now", lambda: START + timedelta(minutes=minutes))


def at(minutes: float) -> str:
    return iso(START + timedelta(minutes=minutes))


def rollout(percent: int, group: str, **others: Any) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "default", "groupId": group}
    return {"name": "flexibleRollout", "parameters": parameters} | others


def make(clock: Clock, name: str, *each: dict[str, Any], minute: int, project: str = "shop") -> None:
    clock(minute)
    create_flag(project, NewFlag(name=name), caller=WHO)
    for strategy in each:
        strategies.add_strategy(project, name, "production", strategy, caller=WHO)
    environments.enable_flag(project, name, "production", caller=WHO)


def set_rollout(name: str, percent: int) -> None:
    [strategy] = Strategy.objects.filter(flag__name=name, environment="production")
    strategies.update_strategy(
        strategy.flag.project_id, name, "production", str(strategy.pk), rollout(percent, name), caller=WHO
    )


def on_for(name: str, minute: float) -> set[str]:
    """Those of USERS for whom the flag was on then, asked one after the other."""
    then = START + timedelta(minutes=minute)
    snapshot = compile_flags(flags_then([name], {"shop", "docs"}, "production", then), "production")
    return {
        user
        for user in USERS
        if evaluate(
            snapshot, Context.of_texts({"userId": user}, now=format_time(then)), now=then, random=lambda: 0.0
        )
        .pair(name)[1]
        .on
    }


@pytest.fixture
def day(clock: Clock) -> set[str]:
    """Three changes after minute 60; the users who got ``pay`` at minute 70."""
    make(clock, "old", rollout(20, "old"), minute=0)
    make(clock, "pay", rollout(10, "pay"), minute=5)
    make(clock, "logo", rollout(0, "logo"), minute=6)
    clock(65)
    set_rollout("logo", 50)
    clock(70)
    set_rollout("pay", 40)
    clock(80)
    environments.disable_flag("shop", "old", "production", caller=WHO)
    clock(120)
    return on_for("pay", 71) - on_for("pay", 69)


def ask(api: Any, affected: Any, others: Any = None, who: str = "viewer", **more: Any) -> Any:
    body = {"environment": "production", "from": at(60), "to": at(100)} | more
    body["affected"] = "\n".join(["userId", *affected])
    if others is not None:
        body["others"] = "\n".join(["userId", *others])
    response = api[who].post(URL, body)
    assert response.status_code == 202, response.content
    return response


def find(api: Any, *args: Any, **more: Any) -> Any:
    document = ask(api, *args, **more).json()
    assert document["state"] == "done", document
    return document["found"]


def test_the_change_that_the_affected_noticed_is_first(api: Any, day: set[str]) -> None:
    affected, others = sorted(day)[:60], sorted(set(USERS) - day)
    found = find(api, affected, others)
    first, *rest = found["changes"]
    event = AuditEvent.objects.get(pk=first["change"])
    assert (event.feature, iso(event.created_at)) == ("pay", first["at"])
    assert first["at"] == at(70)
    assert first["noticed"] == {"affected": 60, "others": 0}
    assert first["known"] == {"affected": 60, "others": len(others)}
    assert first["flags"] == [{"name": "pay", "affected": {"offToOn": 60}, "others": {}}]
    assert first["isLikely"]
    assert first["sentence"] == f"pay turned on for 60 of 60 affected users and 0 of {len(others)} others."
    assert {change["at"] for change in rest} == {at(65), at(80)}
    assert not any(change["isLikely"] for change in rest)
    lost = next(change for change in rest if change["at"] == at(80))
    assert lost["noticed"]["affected"] == len(on_for("old", 75) & set(affected))
    assert lost["flags"][0]["others"] == {"onToOff": len(on_for("old", 75) & set(others))}


def test_what_the_affected_had_before(api: Any, day: set[str]) -> None:
    had = on_for("old", 60)
    found = find(api, had, set(USERS) - had, to=at(64))
    assert found["changes"] == []
    assert [(each["flag"], each["result"]) for each in found["common"]] == [("old", "on")]
    assert found["common"][0]["noticed"] == {"affected": len(had), "others": 0}


def test_a_change_that_no_affected_user_noticed_is_last(api: Any, day: set[str]) -> None:
    lucky = set(USERS) - day - on_for("old", 75)
    found = find(api, sorted(lucky)[:50], sorted(day))
    assert found["changes"][-1]["noticed"]["affected"] == 0
    assert "for no affected user" in found["changes"][-1]["sentence"]


def test_without_others_generated_users_stand_in(api: Any, day: set[str]) -> None:
    found = find(api, sorted(day))
    assert (found["othersAre"], found["others"], found["common"]) == ("generated", 1_000, [])
    assert found["changes"][0]["at"] == at(70)
    assert 200 < found["changes"][0]["noticed"]["others"] < 400  # 30 % of them


def test_own_users_stand_in(api: Any, people: Any, day: set[str]) -> None:
    others = sorted(set(USERS) - day)
    body = "\n".join(["userId", *others]).encode()
    keep_own_users(body, len(others), file_name="mine.csv", caller=Caller(user=people["viewer"]))
    found = find(api, sorted(day))
    assert (found["othersAre"], found["others"]) == ("own", len(others))
    assert found["changes"][0]["noticed"] == {"affected": len(day), "others": 0}


def test_a_transaction_is_one_change(api: Any, clock: Clock) -> None:
    for name in ("a", "b"):
        make(clock, name, rollout(100, name), minute=0)
    clock(70)
    with transaction.atomic():
        for name in ("a", "b"):
            environments.disable_flag("shop", name, "production", caller=WHO)
    clock(120)
    [change] = find(api, ["1", "2"], ["3"])["changes"]
    assert [flag["name"] for flag in change["flags"]] == ["a", "b"]
    assert change["noticed"] == {"affected": 2, "others": 1}
    assert change["sentence"].startswith("a and 1 more turned off for 2 of 2")


def test_a_segment_and_a_parent_count(api: Any, clock: Clock) -> None:
    def is_user(user: str) -> list[dict[str, Any]]:
        return [{"contextName": "userId", "operator": "IN", "values": [user]}]

    clock(0)
    segment = create_segment({"name": "vip", "constraints": is_user("1")}, caller=WHO)
    make(clock, "child", rollout(100, "c", segments=[segment.pk]), minute=1)
    clock(70)
    update_segment(segment.pk, {"name": "vip", "constraints": is_user("2")}, caller=WHO)
    clock(120)
    [change] = find(api, ["1"], ["3"])["changes"]
    assert change["flags"][0] == {"name": "child", "affected": {"onToOff": 1}, "others": {}}


def test_what_a_table_lacks_is_left_out(api: Any, clock: Clock) -> None:
    make(clock, "f", rollout(100, "f"), minute=0)
    clock(70)
    [strategy] = Strategy.objects.filter(flag__name="f", environment="production")
    needs = [{"contextName": "country", "operator": "IN", "values": ["NO"]}]
    strategies.update_strategy(
        "shop", "f", "production", str(strategy.pk), rollout(100, "f", constraints=needs), caller=WHO
    )
    clock(120)
    [change] = find(api, ["1", "2"], ["3"])["changes"]
    assert change["known"] == {"affected": 0, "others": 0}
    assert change["p"] == 1


def test_only_projects_that_one_may_read(api: Any, clock: Clock, day: set[str]) -> None:
    make_project("docs")
    make(clock, "hidden", rollout(100, "h"), minute=75, project="docs")
    clock(120)
    assert {flag["name"] for each in find(api, ["1"], ["2"])["changes"] for flag in each["flags"]} >= {
        "hidden"
    }
    document = ask(api, ["1"], ["2"], who="reader").json()
    assert "hidden" not in str(document)
    assert api["viewer"].get(f"{RUNS}/{document['id']}").status_code == 404
    assert api["admin"].delete(f"{RUNS}/{document['id']}").status_code == 404


def test_a_time_before_versions_is_refused(api: Any, day: set[str]) -> None:
    since = START + timedelta(minutes=62)
    VersionsSince.objects.create(since=since, kept_since=since)
    body = {"environment": "production", "affected": "userId\n1\n", "from": at(60), "to": at(100)}
    response = api["viewer"].post(URL, body)
    assert response.status_code == 409
    assert "backfill_versions" in response.json()["message"]
    assert find(api, sorted(day), **{"from": at(63)})["changes"][0]["at"] == at(70)


def test_refused(api: Any, shop: Any) -> None:
    body = {"environment": "production", "affected": "userId\n1\n", "from": at(0), "to": at(60)}
    for other, message in (
        ({"to": at(0)}, "from: must be before to"),
        ({"to": iso(timezone.now() + timedelta(days=1))}, "to: must not be in the future"),
        ({"affected": "userId\n1,2\n"}, "row 2: must have 1 cells, not 2"),
        ({"affected": ""}, "affected"),
        ({"environment": "nosuch"}, "nosuch"),
        ({"affected": "," * 5_000}, "at most 1,000 columns"),
    ):
        response = api["viewer"].post(URL, body | other)
        assert response.status_code == 400, other
        assert message in response.json()["message"]
    assert not UserRun.objects.exists()


def test_a_large_incident_waits(api: Any, day: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHANGES_AT_ONCE", 1)
    response = ask(api, day, set(USERS) - day)
    address = f"{RUNS}/{response.json()['id']}"
    assert response.json()["state"] == "waiting"
    worker.work()
    assert api["viewer"].get(address).json()["found"]["changes"][0]["at"] == at(70)
    text = b"".join(api["viewer"].get(f"{address}/result").streaming_content).decode()
    [first, *_] = csv.DictReader(StringIO(text))
    assert (first["flags"], first["affected"], first["others"]) == ("pay", str(len(day)), "0")


def test_noise_does_not_hide_the_change(clock: Clock) -> None:
    """Of 20 draws, each of a change, three quarters of its users, and as many others as a quarter of those affected."""
    names = [f"f{number}" for number in range(8)]
    for number, name in enumerate(names):
        make(clock, name, rollout(5 * number, name), minute=number)
    got = {}
    for number, name in enumerate(names):
        clock(60 + number)
        set_rollout(name, 5 * number + 25)
        got[at(60 + number)] = on_for(name, 60 + number) - on_for(name, 59)
    clock(120)
    window = Window(START + timedelta(minutes=30), START + timedelta(minutes=100))
    right = 0
    for seed in range(20):
        random = Random(seed)
        moment, noticed = random.choice(sorted(got.items()))
        affected = {*random.sample(sorted(noticed), len(noticed) * 3 // 4), *random.sample(USERS, 20)}
        groups = [Users(["userId"], [[user] for user in each]) for each in (affected, set(USERS) - affected)]
        found = find_cause(Sight(frozenset({"shop"}), False), "production", window, *groups, max_changes=50)
        right += found["changes"][0]["at"] == moment
    assert right == 20


def test_the_page(browse: Any, day: set[str]) -> None:
    others = SimpleUploadedFile("others.csv", "\n".join(["userId", *(set(USERS) - day)]).encode())
    values = {"environment": "production", "since": at(60)[:19], "until": at(100)[:19]}
    response = browse("admin").post(PAGE, values | {"ids": "\r\n".join(day), "others": others})
    assert response.status_code == 302, page_text(response)
    page = browse("admin").get(response["Location"])
    text = " ".join(page_text(page).split())
    assert f"Most likely: pay turned on for {len(day)} of {len(day)} affected users" in text
    event = AuditEvent.objects.filter(feature="pay").latest("pk")
    assert f"/activity/?change={event.pk}" in page.text
    assert f"/activity/{event.pk}/revert" in page.text
    assert "Turn back" in text
    assert "What the affected had in common before" in text
    empty = browse("admin").post(PAGE, values)
    assert empty.status_code == 400
    assert "Enter the ids of affected users" in page_text(empty)
