"""Requests of many changes: made together, refused by name, and measured once as long as nothing has changed."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flagadmin.core.audit.models import AuditEvent
from playground.models import SavedContext
from projects.models import Flag, Strategy
from releases.requests import impact
from tests.support.change_requests import REQUESTS, enter, guarded, propose, sent, turn
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)


def make_flags(number: int) -> None:
    guarded(1)
    for index in range(number):
        rollout = {"name": "flexibleRollout", "parameters": {"rollout": "10", "stickiness": "default"}}
        live_flag(f"flag-{index}", strategies=[rollout])


def set_rollout(flag: str, rollout: str) -> dict[str, Any]:
    strategy = Strategy.objects.get(flag__name=flag, environment="production")
    payload = {"id": str(strategy.pk), "parameters": strategy.parameters | {"rollout": rollout}}
    return {"feature": flag, "action": "updateStrategy", "payload": payload}


def approved(api: Any, number: int) -> dict[str, Any]:
    made = sent(api["owner"], *(set_rollout(f"flag-{index}", "50") for index in range(number)))
    assert enter(api["admin"], made, "Approved").status_code == 200
    return made


def rollouts() -> set[str]:
    stored = Strategy.objects.filter(environment="production").order_by("pk")
    return {strategy.parameters["rollout"] for strategy in stored}


def count_proposing(api: Any, changes: list[Any]) -> int:
    with CaptureQueriesContext(connection) as statements:
        made = propose(api["owner"], *changes)
    assert api["owner"].delete(f"{REQUESTS}/{made['id']}").status_code == 200
    return len(statements)


@pytest.mark.parametrize(
    ("make", "each"),
    [
        pytest.param(lambda name: set_rollout(name, "50"), 1, id="strategies"),
        pytest.param(lambda name: turn(False, name), 2, id="switches"),
    ],
)
def test_many_are_proposed_in_few_queries(make, each, api, shop):
    make_flags(22)
    changes = [make(f"flag-{index}") for index in range(22)]
    count_proposing(api, changes)
    few, many = count_proposing(api, changes[:2]), count_proposing(api, changes)
    assert many - few <= each * 20 + 2  # the rows that the trial changes


def test_of_two_of_the_same_thing_the_second_is_kept(api, shop):
    make_flags(2)
    turned = [turn(False, "flag-0"), turn(False, "flag-1"), turn(True, "flag-0")]
    made = propose(api["owner"], *turned, set_rollout("flag-1", "20"), set_rollout("flag-1", "50"))
    listed = {each["name"]: [change["action"] for change in each["changes"]] for each in made["features"]}
    assert listed == {"flag-1": ["updateEnabled", "updateStrategy"]}
    [strategy] = [each for each in made["features"][0]["changes"] if each["action"] == "updateStrategy"]
    assert strategy["payload"]["parameters"]["rollout"] == "50"
    recorded = list(AuditEvent.objects.filter(type__startswith="change-").values_list("type", flat=True))
    assert (recorded.count("change-added"), recorded.count("change-discarded")) == (2, 0)


def test_many_are_proposed_again_in_few_queries(api, shop):
    make_flags(22)
    changes = [turn(False, f"flag-{index}") for index in range(22)]
    counted = []
    for proposed in (changes[:2], changes):
        made = propose(api["owner"], *proposed)
        with CaptureQueriesContext(connection) as statements:
            again = propose(api["owner"], *proposed)
        assert [each["name"] for each in again["features"]] == [each["name"] for each in made["features"]]
        counted.append(len(statements))
        assert api["owner"].delete(f"{REQUESTS}/{made['id']}").status_code == 200
    assert counted[1] - counted[0] <= 3 * 20 + 2  # each is deleted and tried


def test_many_of_the_same_thing_are_proposed_in_few_queries(api, shop):
    make_flags(1)
    changes = [turn(bool(number % 2), "flag-0") for number in range(21)]
    count_proposing(api, changes)
    assert count_proposing(api, changes) - count_proposing(api, changes[:3]) <= 2


def test_strategies_of_many_flags_change_together(api, shop):
    make_flags(12)
    few, many = approved(api, 2), approved(api, 12)
    with CaptureQueriesContext(connection) as of_few:
        assert enter(api["admin"], few, "Applied").status_code == 200
    Strategy.objects.filter(flag__name__in=["flag-0", "flag-1"]).update(
        parameters={"rollout": "10", "stickiness": "default"}
    )
    with CaptureQueriesContext(connection) as of_many:
        assert enter(api["admin"], many, "Applied").status_code == 200
    assert rollouts() == {"50"}
    events = AuditEvent.objects.filter(type="feature-strategy-update", actor_name="admin")
    assert events.values("feature").distinct().count() == 12
    assert len(of_many) - len(of_few) <= 2 * (12 - 2)  # each strategy's row, and what its trigger asks


def test_changes_of_other_kinds_are_recorded_together_in_their_order(api, shop):
    make_flags(8)
    names = [f"flag-{index}" for index in range(8)]
    off = [{"feature": name, "action": "updateEnabled", "payload": {"enabled": False}} for name in names]
    more = [{"feature": name, "action": "addStrategy", "payload": {"name": "default"}} for name in names]
    made = sent(api["owner"], *off, *more)
    enter(api["admin"], made, "Approved")
    with CaptureQueriesContext(connection) as statements:
        assert enter(api["admin"], made, "Applied").status_code == 200
    inserts = [each for each in statements if 'INSERT INTO "audit_auditevent"' in each["sql"]]
    assert len(inserts) == 2  # of the changes, and of the request
    recorded = AuditEvent.objects.filter(feature__in=names, actor_name="admin").order_by("pk")
    kinds = ["feature-environment-disabled"] * 8 + ["feature-strategy-add"] * 8
    assert list(recorded.values_list("type", "feature")) == list(zip(kinds, names * 2, strict=True))


def test_the_one_that_cannot_be_made_is_named_and_nothing_is_made(api, shop, monkeypatch):
    make_flags(3)
    made = approved(api, 3)
    Flag.objects.filter(name="flag-1").delete()
    monkeypatch.setattr("releases.requests.states.check_conflicts", lambda request: None)
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert refused.json()["message"].startswith(
        "Change 2 (Roll out flag-1 to 50 % of users): Flag flag-1 not found"
    )
    assert rollouts() == {"10"}


@pytest.fixture
def measured(monkeypatch: Any) -> list[None]:
    """One for each measurement."""
    measured: list[None] = []
    real = impact.measure_difference

    def measure(*args: Any, **kwargs: Any) -> Any:
        measured.append(None)
        return real(*args, **kwargs)

    monkeypatch.setattr(impact, "measure_difference", measure)
    return measured


def save_a_context() -> None:
    SavedContext.objects.create(name="Somebody", context={"userId": "7"})


def depend_on_the_time() -> None:
    since = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2026-01-01T00:00:00Z"}
    Strategy.objects.update(constraints=[since])


@pytest.mark.parametrize(
    ("before", "meanwhile", "times"),
    [
        pytest.param(None, None, 1, id="nothing has changed"),
        pytest.param(None, save_a_context, 2, id="another saved context"),
        pytest.param(depend_on_the_time, None, 3, id="a date"),
    ],
)
def test_what_may_have_changed_is_measured_again(api, shop, measured, before, meanwhile, times):
    make_flags(2)
    if before:
        before()
    made = approved(api, 2)
    if meanwhile:
        meanwhile()
    assert enter(api["admin"], made, "Applied").status_code == 200
    assert len(measured) == times
