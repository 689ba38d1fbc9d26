"""An approval holds for what the touched flags answer: any edit of what decides that withdraws it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Dependency, Flag, FlagEnvironment, Segment, Strategy
from releases.models import ChangeRequest, Review, Schedule
from releases.schedules.due import apply_due
from tests.support.change_requests import enter, guarded, reviewer, sent, turn
from tests.support.playground import live_flag

SHOP = "/api/admin/projects/shop"
VARIANTS = [
    {
        "name": name,
        "weight": 500,
        "weightType": "variable",
        "stickiness": "default",
        "payload": {"type": "string", "value": f"https://{name}.example"},
    }
    for name in ("p", "q")
]
SIXTY = [f"{number}" for number in range(60)]
pytestmark = pytest.mark.django_db(transaction=True)
Edit = Callable[[Any, str], Any]


def on_ids(values: list[str]) -> dict[str, Any]:
    return {"contextName": "userId", "operator": "IN", "values": values}


def make_flag(name: str) -> Flag:
    """A flag that is off, with a constraint, variants of its own and of its strategy, and a parent."""
    everybody = {"rollout": "100", "stickiness": "default", "groupId": name}
    return live_flag(
        name,
        enabled=False,
        variants=VARIANTS,
        strategies=[
            {
                "name": "flexibleRollout",
                "parameters": everybody,
                "constraints": [on_ids(SIXTY)],
                "variants": VARIANTS,
            }
        ],
    )


def strategy_url(name: str) -> str:
    strategy = Strategy.objects.get(flag__name=name, environment="production")
    return f"{SHOP}/features/{name}/environments/production/strategies/{strategy.pk}"


def edit_payload_of_variant(api: Any, name: str) -> Any:
    patch = [{"op": "replace", "path": "/0/payload/value", "value": "https://evil.example"}]
    url = f"{SHOP}/features/{name}/environments/production/variants"
    return api["member"].patch(url, patch, format="json")


def edit_strategy(path: str, value: Any) -> Edit:
    def edit(api: Any, name: str) -> Any:
        patch = [{"op": "replace", "path": path, "value": value}]
        return api["member"].patch(strategy_url(name), patch, format="json")

    edit.__name__ = f"{path} {value}"
    return edit


WEIGHTS = [VARIANTS[0] | {"weight": 100, "weightType": "fix"}, VARIANTS[1] | {"weight": 900}]


def add_a_strategy(api: Any, name: str) -> Any:
    url = f"{SHOP}/features/{name}/environments/production/strategies"
    return api["member"].post(url, {"name": "default"}, format="json")


def require_another_variant(api: Any, name: str) -> Any:
    parent = {"feature": "base", "enabled": True, "variants": ["q"]}
    return api["member"].post(f"{SHOP}/features/{name}/dependencies", parent, format="json")


def edit_default_strategy(api: Any, name: str) -> Any:
    everybody = {"rollout": "50", "stickiness": "default", "groupId": name}
    body = {"name": "flexibleRollout", "parameters": everybody, "constraints": [], "segments": []}
    url = f"{SHOP}/environments/production/default-strategy"
    return api["owner"].post(url, body, format="json")


def edit_the_segment(api: Any, name: str) -> Any:
    segment = Segment.objects.get(name=f"of {name}")
    body = {"name": segment.name, "constraints": []}
    return api["editor"].put(f"/api/admin/segments/{segment.pk}", body, format="json")


def turn_on(name: str) -> dict[str, Any]:
    make_flag(name)
    return turn(True, name)


def turn_child_on(name: str) -> dict[str, Any]:
    child, parent = make_flag(name), Flag.objects.get(name="base")
    Dependency.objects.create(flag=child, parent=parent, variants=["p"])
    return turn(True, name)


def turn_empty_on(name: str) -> dict[str, Any]:
    live_flag(name, enabled=False, strategies=[])
    return turn(True, name)


def use_segment(name: str) -> dict[str, Any]:
    live_flag(name, strategies=[{"name": "default", "constraints": [on_ids(["7"])]}])
    segment = Segment.objects.create(name=f"of {name}", constraints=[on_ids(["8"])])
    added = {"name": "default", "segments": [segment.pk]}
    return {"feature": name, "action": "addStrategy", "payload": added}


WAYS: list[tuple[Callable[[str], dict[str, Any]], Edit, str]] = [
    (turn_on, edit_payload_of_variant, "The variants of {} have changed."),
    *(
        (turn_on, edit, "The strategies of {} have changed.")
        for edit in (
            edit_strategy("/variants/0/payload/value", "x"),
            edit_strategy("/variants", WEIGHTS),
            edit_strategy("/constraints", [on_ids([*SIXTY, "attacker"])]),
            edit_strategy("/constraints", []),
            edit_strategy("/parameters/stickiness", "random"),
            add_a_strategy,
        )
    ),
    (turn_child_on, require_another_variant, "The parents of {} have changed."),
    (turn_empty_on, edit_default_strategy, "The strategies of {} have changed."),
    (use_segment, edit_the_segment, "The constraints of segment of {} have changed."),
]


@pytest.fixture
def release(api: Any, shop: Any) -> Any:
    """A client of somebody who may apply, in a guarded environment with a flag ``base`` that is on."""
    guarded(1)
    live_flag("base", variants=VARIANTS)
    return reviewer("rita", "APPROVE_CHANGE_REQUEST", "APPLY_CHANGE_REQUEST")


def approve(api: Any, release: Any, *changes: dict[str, Any]) -> dict[str, Any]:
    request = sent(api["member"], *changes)
    assert enter(release, request, "Approved").json()["state"] == "Approved"
    return request


def test_no_edit_of_what_was_approved_is_applied(api, release):
    for number, (make, edit, reason) in enumerate(WAYS):
        name = f"cart-{number}"
        request = approve(api, release, make(name))
        before = _answers()
        assert edit(api, name).status_code in (200, 201, 204), edit.__name__
        assert _answers() == before, edit.__name__
        refused = enter(release, request, "Applied")
        assert refused.status_code == 409, edit.__name__
        message = refused.json()["message"]
        assert reason.format(name) in message, (edit.__name__, message)
        assert " UTC on " in message, (edit.__name__, message)
        assert _answers() == before, edit.__name__
        shown = api["viewer"].get(f"{SHOP}/change-requests/{request['id']}").json()
        assert (shown["state"], shown["approvals"]) == ("In review", []), edit.__name__
        assert enter(release, request, "Approved").json()["state"] == "Approved", edit.__name__
        assert enter(release, request, "Applied").status_code == 200, edit.__name__


def test_a_schedule_of_what_was_edited_is_suspended(api, release, monkeypatch):
    later = timezone.now() + timedelta(minutes=2)
    edited = {}
    for number, (make, edit, reason) in enumerate(WAYS):
        name = f"cart-{number}"
        request = approve(api, release, make(name))
        answer = enter(release, request, "Scheduled", scheduledAt=later.isoformat())
        assert answer.status_code == 200, answer.json()
        assert edit(api, name).status_code in (200, 201, 204), edit.__name__
        edited[request["id"]] = edit.__name__, reason.format(name)
    before = _answers()
    monkeypatch.setattr(timezone, "now", lambda: later)
    apply_due()
    assert _answers() == before
    for schedule in Schedule.objects.all():
        way, reason = edited[schedule.request_id]
        assert (schedule.status, reason in schedule.reason) == ("suspended", True), (way, schedule.reason)


def test_turning_off_is_blocked_by_no_edit(api, release):
    """What is off answers off, and so do those that need it."""
    make_flag("child")
    Dependency.objects.create(flag=Flag.objects.get(name="child"), parent=Flag.objects.get(name="base"))
    FlagEnvironment.objects.filter(flag__name="child").update(enabled=True)
    request = approve(api, release, turn(False, "base"))
    Strategy.objects.filter(flag__name__in=("base", "child")).update(constraints=[], variants=[])
    FlagEnvironment.objects.filter(flag__name__in=("base", "child")).update(variants=[])
    assert enter(release, request, "Applied").status_code == 200
    assert not FlagEnvironment.objects.get(flag__name="base", environment="production").enabled


def test_words_and_tags_withdraw_nothing(api, release):
    request = approve(api, release, turn_on("cart"))
    member = api["member"]
    title = [{"op": "replace", "path": "/title", "value": "Nordic"}]
    assert member.patch(strategy_url("cart"), title, format="json").status_code == 200
    words = {"description": "Pays", "type": "operational"}
    assert member.put(f"{SHOP}/features/cart", words, format="json").status_code == 200
    tag = {"type": "simple", "value": "nordic"}
    assert member.post("/api/admin/features/cart/tags", tag, format="json").status_code == 201
    assert enter(release, request, "Applied").status_code == 200


def test_an_approval_from_before_the_upgrade_is_withdrawn(api, release):
    request = approve(api, release, turn_on("cart"))
    Review.objects.update(fingerprint=None)
    ChangeRequest.objects.update(fingerprint=None)
    refused = enter(release, request, "Applied")
    assert refused.status_code == 409
    assert "It was approved before flagadmin kept what exactly was approved." in refused.json()["message"]
    assert enter(release, request, "Approved").status_code == 200
    assert enter(release, request, "Applied").status_code == 200


def test_a_revert_is_held_to_its_approval_too(api, release):
    request = approve(api, release, turn(False, "base"))
    assert enter(release, request, "Applied").status_code == 200
    revert = api["member"].post(f"{SHOP}/change-requests/{request['id']}/revert").json()
    assert enter(release, revert, "Approved").json()["state"] == "Approved"
    assert edit_payload_of_variant(api, "base").status_code == 200
    refused = enter(release, revert, "Applied")
    assert refused.status_code == 409
    assert "The variants of base have changed." in refused.json()["message"]


def _answers() -> list[Any]:
    """What the environment answers, by its switches and what is stored of flags that are on."""
    on = Flag.objects.filter(environments__environment="production", environments__enabled=True)
    strategies = Strategy.objects.filter(flag__in=on, environment="production").order_by("pk")
    return [sorted(on.values_list("name", flat=True)), list(strategies.values_list("pk", "constraints"))]
