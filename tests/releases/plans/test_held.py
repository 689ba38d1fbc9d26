"""A step that would no longer answer what was approved is held, and its pace is part of what was approved."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from groups.access import Caller
from projects.models import FlagEnvironment, ProjectEnvironment, Segment
from releases.models import Milestone, ReleasePlan, Safeguard
from releases.plans.actions import set_transition
from releases.plans.due import look_at_due
from releases.safeguards.actions import note_alert
from tests.support.change_requests import enter, guarded, reviewer, sent
from tests.support.page_text import page_text
from tests.support.plans import DAY, PLACE, Move, cart, planned, reload, rollout_of, state_of

FLAG = "/api/admin/projects/shop/features/cart"
PLANS = f"{FLAG}/environments/production/release-plans"
GERMANY = [{"contextName": "country", "operator": "IN", "values": ["DE"]}]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rita(shop: Any, people: Any, pass_time: Move) -> Any:
    """Somebody who may approve and apply, where the plan of a flag is at 5 %, and its next milestone is for Germany."""
    cart(5)
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=None)
    segment = Segment.objects.create(name="germany", project_id="shop", constraints=GERMANY)
    planned(5, 25, 100)
    second = Milestone.objects.get(place=1)
    Milestone.objects.filter(pk=second.pk).update(
        strategies=[strategy | {"segments": [segment.pk]} for strategy in second.strategies]
    )
    guarded(1)
    return reviewer("rita", "APPROVE_CHANGE_REQUEST", "APPLY_CHANGE_REQUEST")


@pytest.fixture
def plan(api: Any, rita: Any) -> ReleasePlan:
    """The plan, started by an approved request."""
    plan = ReleasePlan.objects.get()
    apply_approved(api, rita, start_request(plan, 0))
    return reload(plan)


def start_request(plan: ReleasePlan, place: int) -> dict[str, Any]:
    payload = {"planId": plan.pk, "milestoneId": key(place)}
    return {"feature": "cart", "action": "startMilestone", "payload": payload}


def apply_approved(api: Any, rita: Any, change: Any) -> None:
    request = sent(api["member"], change)
    for state in ("Approved", "Applied"):
        answer = enter(rita, request, state)
        assert answer.status_code == 200, answer.json()


def key(place: int) -> str:
    return Milestone.objects.get(plan__flag__name="cart", place=place).pk


def start(by: Any, plan: ReleasePlan, place: int) -> Any:
    return by.post(f"{PLANS}/{plan.pk}/milestones/{key(place)}/start")


PLAN_BRAKE = {
    "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"},
    "triggerCondition": {"operator": ">", "threshold": 0},
    "action": {"type": "turnOff"},
}


@pytest.mark.parametrize("is_added", [True, False])
def test_safeguards_are_part_of_what_was_approved(api, rita, is_added):
    """Nothing runs yet, so everybody who may edit the plan may add and remove them."""
    path = f"{PLANS}/{ReleasePlan.objects.get().pk}/safeguards"
    edits = [lambda: api["member"].put(path, PLAN_BRAKE, format="json")]
    edits.append(lambda: api["member"].delete(f"{path}/{Safeguard.objects.get().pk}"))
    if not is_added:
        assert edits.pop(0)().status_code == 204
    made = sent(api["member"], start_request(ReleasePlan.objects.get(), 0))
    assert enter(rita, made, "Approved").status_code == 200
    assert edits[0]().status_code == 204
    refused = enter(rita, made, "Applied")
    assert refused.status_code == 409
    assert "The safeguards of cart, release plan" in refused.json()["message"]
    for state in ("Approved", "Applied"):
        assert enter(rita, made, state).status_code == 200


def widen(api: Any) -> None:
    """Nothing uses the segment yet."""
    segment = Segment.objects.get(name="germany")
    body = {"name": "germany", "project": "shop", "constraints": []}
    answer = api["owner"].put(f"/api/admin/segments/{segment.pk}", body, format="json")
    assert answer.status_code == 204, answer.content


def test_a_step_whose_time_has_come_is_held_and_says_so_everywhere(api, rita, plan, pass_time, browse):
    pass_time(timedelta(minutes=1))
    widen(api)
    shown = api["viewer"].get(f"{PLANS}/{plan.pk}").json()
    assert (shown["state"], "The constraints of segment germany have changed." in shown["held"]) == (
        "running",
        True,
    )
    pages = ["/projects/shop/features/cart/", reverse("plan", args=["shop", "cart", plan.pk])]
    for page in pages:
        assert "The constraints of segment germany have changed." in page_text(browse("member").get(page)), (
            page
        )
    pass_time(DAY)
    look_at_due()
    assert (state_of(plan), rollout_of()) == (("paused", "5 %"), 5)
    shown = api["viewer"].get(f"{PLANS}/{plan.pk}").json()
    assert "owner changed segment germany at " in shown["reason"]
    assert "It needs another approval" in shown["reason"]
    for page in (*pages, "/"):
        assert "It needs another approval" in page_text(browse("member").get(page)), page
    assert start(api["member"], plan, 1).status_code == 403
    apply_approved(api, rita, start_request(plan, 1))
    assert (state_of(plan), rollout_of(), reload(plan).approved) == (("running", "25 %"), 25, True)


def test_somebody_who_starts_it_has_it_held(api, plan, pass_time):
    pass_time(DAY)
    widen(api)
    refused = start(api["member"], plan, 1)
    assert refused.status_code == 409
    assert "The constraints of segment germany have changed." in refused.json()["message"]
    assert (state_of(plan), rollout_of()) == (("paused", "5 %"), 5)


def test_who_may_apply_is_held_too(api, rita, plan):
    widen(api)
    assert start(rita, plan, 1).status_code in (403, 404, 409)
    assert rollout_of() == 5


def test_stepping_back_to_something_else_is_held(api, rita, plan, pass_time):
    pass_time(DAY)
    assert start(api["member"], plan, 1).status_code == 200
    pass_time(DAY)
    assert start(api["member"], plan, 2).status_code == 200
    widen(api)
    refused = start(api["member"], plan, 1)
    assert refused.status_code == 409
    assert rollout_of() == 100


def test_a_breached_safeguard_takes_no_step_back_to_something_else(api, rita, plan, pass_time):
    on_alert = {"impactMetric": {"metricName": "Down", "source": "alert"}, "action": {"type": "stepBack"}}
    payload = {"planId": plan.pk, "safeguard": on_alert}
    apply_approved(api, rita, {"feature": "cart", "action": "changeReleasePlanSafeguard", "payload": payload})
    for place in (1, 2):
        pass_time(DAY)
        assert start(api["member"], plan, place).status_code == 200
    ReleasePlan.objects.update(state="running")
    widen(api)
    note_alert("Down", {}, fires=True, caller=Caller.system())
    look_at_due()
    assert (state_of(plan), rollout_of()) == (("paused", "100 %"), 100)
    assert "No step back was taken." in reload(plan).reason


def test_a_milestone_is_not_started_before_its_time_but_by_who_may_apply_requests(
    api, rita, plan, pass_time, shop
):
    refused = start(api["member"], plan, 1)
    assert refused.status_code == 403
    message = refused.json()["message"]
    assert "25 % would start before its time. It waits for: 1 day at 5 %." in message
    assert "Apply change requests" in message
    assert rollout_of() == 5
    apply_approved(api, rita, start_request(plan, 1))
    assert rollout_of() == 25

    permissions = ("APPLY_CHANGE_REQUEST", "UPDATE_FEATURE_STRATEGY")
    assert start(reviewer("otto", *permissions), plan, 2).status_code == 200
    assert (rollout_of(), reload(plan).approved) == (100, True)


def test_a_paused_plan_is_not_started_on_and_going_back_is_free_but_not_from_the_end(
    api, plan, pass_time, rita
):
    pass_time(DAY)
    assert (
        api["member"].post(f"{FLAG}/environments/production/progressions/{plan.pk}/pause").status_code == 200
    )
    assert start(api["member"], plan, 1).status_code == 403
    assert (
        api["member"].post(f"{FLAG}/environments/production/progressions/{plan.pk}/resume").status_code == 200
    )
    pass_time(DAY)
    assert start(api["member"], plan, 1).status_code == 200

    assert start(api["member"], plan, 0).status_code == 200
    for place in (1, 2):
        pass_time(DAY)
        assert start(api["member"], plan, place).status_code == 200
    ReleasePlan.objects.update(state="done")
    refused = start(api["member"], plan, 1)
    assert refused.status_code == 403
    assert "is done" in refused.json()["message"]
    assert rollout_of() == 100


def test_by_hand_the_next_one_is_started_by_anybody_who_may(api, plan):
    set_transition(PLACE, key(0), None, caller=Caller.system())
    ReleasePlan.objects.update(approved=True, fingerprints=plan.fingerprints)
    assert start(api["member"], plan, 1).status_code == 200


def test_a_plan_from_before_the_upgrade_is_held(api, plan, pass_time):
    ReleasePlan.objects.update(fingerprints=None)
    pass_time(DAY)
    look_at_due()
    assert state_of(plan) == ("paused", "5 %")
    assert "It was approved before flagadmin kept what exactly was approved." in reload(plan).reason


def test_edits_of_the_flag_while_it_is_off_are_not_missed(api, plan, pass_time):
    FlagEnvironment.objects.filter(flag__name="cart").update(enabled=False)
    variant = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}
    answer = api["member"].put(f"{FLAG}/environments/production/variants", [variant], format="json")
    assert answer.status_code == 200
    FlagEnvironment.objects.filter(flag__name="cart", environment="production").update(enabled=True)
    pass_time(DAY)
    look_at_due()
    assert state_of(plan) == ("paused", "5 %")
    assert "The variants of cart have changed." in reload(plan).reason


def test_where_nothing_asks_for_requests_nothing_is_held(api, plan, pass_time):
    guarded(None)
    widen(api)
    pass_time(DAY)
    look_at_due()
    assert (state_of(plan), rollout_of()) == (("running", "25 %"), 25)


def test_a_request_to_start_covers_all_milestones(api, rita):
    plan = ReleasePlan.objects.get()
    request = sent(api["member"], start_request(plan, 0))
    assert enter(rita, request, "Approved").status_code == 200
    widen(api)
    refused = enter(rita, request, "Applied")
    assert refused.status_code == 409
    assert "Milestone 2 (25 %) of cart would answer something else now." in refused.json()["message"]
    assert state_of(plan) == ("planned", None)
