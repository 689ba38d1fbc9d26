"""What a user will get: the playground at a moment ahead, with all that is scheduled until then."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from groups.access import Caller
from groups.models import User
from playground.comparison.compare import forecast
from playground.models import SavedContext
from projects.definitions import read_definitions
from projects.models import Dependency, Flag, Project, Segment, Strategy
from releases.changes import KINDS
from releases.derive import ProposedChange
from releases.models import Schedule
from releases.plans.actions import start_milestone
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from releases.schedules.due import apply_due
from tests.support.cast import make_user
from tests.support.examples import examples
from tests.support.page_text import page_text
from tests.support.plans import PLACE, planned
from tests.support.playground import live_flag
from tests.support.random_proposals import Proposals, flags, flags_of

__all__ = ["flags"]
PLAYGROUND = "/api/admin/playground"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(people: Any) -> Caller:
    return Caller(user=people["admin"])


@pytest.fixture
def cart(shop: Any) -> Flag:
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": {"rollout": "0"}}])


def turn(enabled: bool) -> ProposedChange:
    return ProposedChange("cart", "updateEnabled", {"enabled": enabled})


def roll_out(percent: str) -> ProposedChange:
    strategy = Strategy.objects.get(flag__name="cart", environment="production")
    parameters = {"rollout": percent, "stickiness": "userId", "groupId": "cart"}
    return ProposedChange("cart", "updateStrategy", {"id": str(strategy.pk), "parameters": parameters})


def in_hours(hours: float) -> Any:
    return timezone.now() + timedelta(hours=hours)


def scheduled(caller: Caller, hours: float, *changes: ProposedChange) -> int:
    request = add_changes("shop", "production", changes, caller=caller)
    set_state("shop", request.pk, "In review", caller=caller)
    schedule_request("shop", request.pk, in_hours(hours), caller=caller)
    return request.pk


def evaluated(api: Any, hours: float, **more: Any) -> tuple[dict[str, bool], list[str]]:
    body = {"environment": "production", "projects": ["shop"], "context": {"userId": "42"}, **more}
    answer = api["viewer"].post(PLAYGROUND, {**body, "at": in_hours(hours).isoformat()}, format="json")
    assert answer.status_code == 200, answer.json()
    features = {each["name"]: each["isEnabled"] for each in answer.json()["features"]}
    return features, answer.json().get("notes", [])


def test_the_api_answers_what_is_scheduled_until_then(api, cart, admin):
    live_flag("other", strategies=[{"name": "default"}])
    first = scheduled(admin, 2, roll_out("100"))
    second = scheduled(admin, 4, ProposedChange("other", "updateEnabled", {"enabled": False}))
    assert evaluated(api, 1) == ({"cart": False, "other": True}, [])
    is_on, notes = evaluated(api, 3)
    assert is_on == {"cart": True, "other": True}
    assert [note.partition(" is applied on ")[0] for note in notes] == [f"Request {first}"]
    is_on, notes = evaluated(api, 5)
    assert is_on == {"cart": True, "other": False}
    assert [note.partition(" is")[0] for note in notes] == [f"Request {first}", f"Request {second}"]


def test_nothing_is_changed_by_looking(api, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    before = read_definitions(["shop"], "production")
    evaluated(api, 3)
    assert read_definitions(["shop"], "production") == before
    assert Schedule.objects.get().status == "pending"


def test_the_pages_say_so(browse, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    at = f"{in_hours(3):%Y-%m-%dT%H:%M:%SZ}"
    query = f"environment=production&context.userId=42&at={at}"
    page = page_text(browse("viewer").get(f"/playground/?{query}"))
    assert "Flags as they will be on" in page
    assert "is applied on" in page
    flag = page_text(browse("viewer").get(f"/playground/flag/cart/?{query}"))
    assert "Flags as they will be on" in flag


def test_what_would_be_suspended_is_left_out_and_says_so(api, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    second = scheduled(admin, 3, roll_out("0"))
    is_on, notes = evaluated(api, 4)
    assert is_on == {"cart": True}
    assert notes[1].startswith(f"Request {second} is due on")
    assert "would be suspended: another request changes the same before." in notes[1]
    Strategy.objects.update(title="Theirs")
    is_on, notes = evaluated(api, 4)
    assert is_on == {"cart": False}
    assert all("would be suspended" in note for note in notes)


def test_a_schedule_of_somebody_who_is_gone_would_be_suspended(api, cart):
    user = make_user("ana", root_role=1)
    made = scheduled(Caller(user=user), 2, roll_out("100"))
    User.objects.filter(pk=user.pk).update(is_active=False)
    is_on, [note] = evaluated(api, 3)
    assert is_on == {"cart": False}
    assert note.startswith(f"Request {made} is due on")
    assert note.endswith("would be suspended: ana, who scheduled it, can no longer log in.")


def test_what_no_longer_changes_what_was_approved_would_be_suspended(api, cart, admin):
    """No other request has changed anything: it was somebody."""
    parent = live_flag("parent", strategies=[{"name": "default"}])
    Dependency.objects.create(flag=cart, parent=parent)
    scheduled(admin, 2, roll_out("100"))
    Strategy.objects.filter(flag=parent).update(disabled=True)
    _, [note] = evaluated(api, 3)
    assert "would be suspended: It no longer changes what was approved." in note


def test_what_would_break_an_expectation_fails_where_that_is_refused(api, cart, admin):
    expected = {"flag": "cart", "environment": "production", "enabled": False, "variant": None}
    SavedContext.objects.create(
        name="Ana", project_id="shop", context={"userId": "42"}, expectations=[expected]
    )
    scheduled(admin, 2, roll_out("100"))
    assert "is applied" in evaluated(api, 3)[1][0]
    Project.objects.filter(pk="shop").update(refuse_broken_expectations=True)
    is_on, [note] = evaluated(api, 3)
    assert is_on == {"cart": False}
    assert "would fail: This breaks 1 expectation, which project shop refuses." in note
    Schedule.objects.update(at=timezone.now() - timedelta(seconds=1))
    apply_due()
    schedule = Schedule.objects.get()
    assert (schedule.status, schedule.reason in note) == ("failed", True)


def test_what_has_been_suspended_or_cancelled_is_not_counted(api, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    Schedule.objects.update(status="suspended")
    assert evaluated(api, 3) == ({"cart": False}, [])


def test_a_segment_of_all_projects_changes_in_each(api, shop, admin):
    segment = Segment.objects.create(name="beta", constraints=[])
    live_flag("cart", strategies=[{"name": "default", "segments": [segment]}])
    live_flag("docs", project="default", strategies=[{"name": "default", "segments": [segment]}])
    only = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    scheduled(admin, 2, ProposedChange("", "updateSegment", {"id": segment.pk, "constraints": only}))
    body = {"environment": "production", "context": {"userId": "42"}, "at": in_hours(3).isoformat()}
    features = api["admin"].post(PLAYGROUND, body, format="json").json()["features"]
    assert {each["name"]: each["isEnabled"] for each in features} == {"cart": False, "docs": False}


def test_now_can_be_compared_with_a_moment_ahead(api, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    body = {
        "from": {"environment": "production"},
        "to": {"environment": "production", "at": in_hours(3).isoformat()},
        "projects": ["shop"],
        "contexts": {"explicit": [{"userId": "42"}]},
    }
    answer = api["viewer"].post(f"{PLAYGROUND}/compare", body, format="json")
    assert answer.status_code == 200, answer.json()
    assert answer.json()["counts"]["offToOn"] == 1


def test_flags_of_projects_that_one_cannot_read_stay_hidden(api, cart, admin):
    scheduled(admin, 2, roll_out("100"))
    body = {"environment": "production", "context": {"userId": "42"}, "at": in_hours(3).isoformat()}
    answer = api["outsider"].post(PLAYGROUND, body, format="json").json()
    assert "cart" not in [each["name"] for each in answer["features"]]
    assert not answer.get("notes")


def test_of_two_requests_that_start_a_plan_the_second_is_suspended(cart, admin):
    plan = planned(10, 50)
    for hours, milestone in enumerate(plan.milestones.all(), 1):
        payload = {"planId": plan.pk, "milestoneId": milestone.pk}
        scheduled(admin, hours, ProposedChange("cart", "startMilestone", payload))
    told = forecast(["shop"], "production", in_hours(5))
    assert [_read_status(note) for note in told.notes] == ["done", "suspended"]
    [flag] = told.changed.applied(read_definitions(["shop"], "production")).flags
    assert "10" in [strategy["parameters"]["rollout"] for strategy in flag["strategies"]]


def test_a_plan_that_goes_on_already_cannot_be_resumed(cart, admin):
    plan = planned(10, 50)
    start_milestone(PLACE, plan.pk, plan.milestones.all()[0].pk, then_pause="Lunch", caller=admin)
    for hours in (1, 2):
        resume = ProposedChange("cart", "resumeMilestoneProgression", {"planId": plan.pk})
        scheduled(admin, hours, resume)
    notes = forecast(["shop"], "production", in_hours(5)).notes
    assert "is applied" in notes[0]
    assert "would fail: Change 1: Release plan 10 → 50 % is running" in notes[1]


def test_a_segment_that_gets_another_name_is_another_one(cart, admin):
    segment = Segment.objects.create(name="beta", constraints=[])
    for hours, name in ((1, "early"), (2, "late")):
        rename = {"id": segment.pk, "name": name}
        scheduled(admin, hours, ProposedChange("", "updateSegment", rename))
    notes = forecast(["shop"], "production", in_hours(5)).notes
    assert [_read_status(note) for note in notes] == ["done", "suspended"]


@pytest.mark.parametrize(
    ("seed", "actions"),
    [
        (0, list(KINDS)),
        pytest.param(1, list(KINDS), marks=pytest.mark.exhaustive),
        pytest.param(
            2, [name for name, kind in KINDS.items() if kind.is_later], marks=pytest.mark.exhaustive
        ),
    ],
)
def test_what_is_forecast_is_what_is_there_then(
    flags: None, people: Any, seed: int, actions: list[str]
) -> None:
    """Random requests of all actions, or of those on release plans, each applied in its turn."""
    proposals, admin, applied = Proposals(seed + 50), Caller(user=people["admin"]), 0
    for _ in range(examples(6)):
        with transaction.atomic():
            for number in range(3):
                changes = [proposals.propose(action) for action in proposals.random.choices(actions, k=2)]
                try:
                    with transaction.atomic():
                        scheduled(admin, 1 + number, *changes)
                except Exception:  # noqa: BLE001 - some random changes cannot be made
                    continue
            told = forecast(["shop"], "production", in_hours(9))
            foreseen = flags_of(told.changed.applied(read_definitions(["shop"], "production")))
            for schedule in Schedule.objects.filter(status="pending").order_by("at", "id"):
                Schedule.objects.filter(pk=schedule.pk).update(at=timezone.now() - timedelta(seconds=1))
                apply_due()
            assert foreseen == flags_of(read_definitions(["shop"], "production")), told.notes
            assert [_read_status(note) for note in told.notes] == [
                schedule.status for schedule in Schedule.objects.order_by("request_id")
            ], told.notes
            applied += Schedule.objects.filter(status="done").count()
            transaction.set_rollback(True)
    assert applied


def _read_status(note: str) -> str:
    said = {"is applied": "done", "would be suspended": "suspended", "would fail": "failed"}
    return next(status for words, status in said.items() if words in note)
