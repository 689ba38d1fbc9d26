"""Milestones follow one another at their time: once, in order, never early, and only while nothing is in their way."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.installation.models import Installation
from groups.access import Caller
from groups.models import Grant, User
from playground.models import SavedContext
from projects.flags.archive.actions import archive_flags
from projects.models import FlagEnvironment, ProjectEnvironment, Strategy
from releases.models import Milestone, ReleasePlan
from releases.plans import actions, due
from releases.plans.due import look_at_due
from tests.support.plans import DAY, PLACE, WHO, Move, cart, reload, rollout_of, started, state_of
from tests.support.racing import together

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def plan(shop: Any, pass_time: Move) -> ReleasePlan:
    cart(5)
    return started(5, 25, 50)


def started_events() -> list[str]:
    events = AuditEvent.objects.filter(type="release-plan-milestone-started").order_by("id")
    return list(events.values_list("subject", flat=True))


def test_each_step_is_taken_at_its_time(plan, pass_time):
    for rollout in (25, 50):
        pass_time(DAY - MINUTE)
        look_at_due()
        assert rollout_of() < rollout
        pass_time(MINUTE)
        look_at_due()
        look_at_due()
        assert rollout_of() == rollout
    pass_time(DAY)
    look_at_due()
    assert state_of(plan) == ("done", "50 %")
    assert started_events() == ["5 %", "25 %", "50 %"]
    assert reload(plan).look_at is None


def test_a_step_that_would_break_an_expectation_pauses_a_plan_that_says_so(plan, pass_time):
    expected = [{"flag": "cart", "environment": "production", "enabled": False, "variant": None}]
    SavedContext.objects.create(name="Bea", context={"userId": "7"}, expectations=expected)
    ReleasePlan.objects.update(pause_if_broken=True)
    Milestone.objects.filter(place=1).update(strategies=[everybody(plan)])
    pass_time(DAY)
    look_at_due()
    assert (rollout_of(), state_of(plan)) == (5, ("paused", "5 %"))
    assert reload(plan).reason == "25 % would break 1 expectation."
    actions.start_milestone(PLACE, plan.pk, milestone_at(plan, 1).pk, caller=WHO)
    assert rollout_of() == 100


def milestone_at(plan: ReleasePlan, place: int) -> Milestone:
    return Milestone.objects.get(plan=plan, place=place)


def everybody(plan: ReleasePlan) -> dict[str, Any]:
    [strategy] = milestone_at(plan, 1).strategies
    return strategy | {"parameters": strategy["parameters"] | {"rollout": "100"}}


def test_events_say_who_took_the_step_and_why(plan, pass_time):
    pass_time(DAY)
    look_at_due()
    event = AuditEvent.objects.filter(type="release-plan-milestone-started").latest("id")
    assert (event.actor_name, event.actor_id) == ("Release plan", None)
    assert event.comment == "Release plan 5 → 25 → 50 %, started by flagadmin"
    assert event.after["whoChanges"]["changed"] > 0
    first = Milestone.objects.get(plan=plan, place=0)
    assert first.passed_at == timezone.now()


def test_steps_that_were_missed_are_taken_one_by_one(plan, pass_time):
    """A server that was away for a week leaves each milestone its day."""
    pass_time(7 * DAY)
    look_at_due()
    assert rollout_of() == 25
    look_at_due()
    assert rollout_of() == 25


def test_a_step_that_was_long_possible_says_for_how_long(plan, pass_time):
    pass_time(DAY * 4)
    look_at_due()
    comments = AuditEvent.objects.filter(type="release-plan-milestone-started").values_list(
        "comment", flat=True
    )
    assert any(comment.endswith("(3 days after it was possible)") for comment in comments), list(comments)


def test_the_api_says_what_a_running_plan_waits_for(api, plan, pass_time):
    def waits() -> Any:
        path = f"/api/admin/projects/shop/features/cart/environments/production/release-plans/{plan.pk}"
        return api["admin"].get(path).json().get("waitsFor")

    assert len(waits()) == 2
    assert waits()[1] == "24 hours at 5 %" or waits()[1].endswith("at 5 %")
    pass_time(DAY)
    assert waits() == []
    FlagEnvironment.objects.filter(flag=plan.flag).update(enabled=False)
    assert waits() == ["cart is off in production."]
    ReleasePlan.objects.update(state="paused")
    assert waits() is None


def test_two_servers_take_a_step_once(plan, pass_time):
    pass_time(DAY)
    together(look_at_due, look_at_due)
    assert started_events() == ["5 %", "25 %"]


def test_who_has_seen_the_plan_earlier_takes_no_second_step(plan, pass_time):
    pass_time(DAY)
    seen = ReleasePlan.objects.select_related("flag", "active", "by").get()
    due.take_step(seen)
    due.take_step(seen)
    assert started_events() == ["5 %", "25 %"]


def test_a_step_that_another_change_holds_up_is_taken_once_that_has_ended(plan, pass_time, monkeypatch):
    monkeypatch.setattr("releases.attempts.LOCK_WAIT", "1ms")
    pass_time(DAY)
    elsewhere = connection.copy()
    elsewhere.set_autocommit(False)
    try:
        with elsewhere.cursor() as cursor:
            cursor.execute("SELECT id FROM projects_project FOR NO KEY UPDATE")
        look_at_due()
    finally:
        elsewhere.close()
    assert rollout_of() == 5
    pass_time(timedelta(seconds=1))
    look_at_due()
    assert rollout_of() == 25


def test_a_server_that_dies_is_followed_by_another_a_minute_later(plan, pass_time, monkeypatch):
    def die(*args: Any, **kwargs: Any) -> None:
        raise SystemExit

    pass_time(DAY)
    with monkeypatch.context() as patched:
        patched.setattr(due, "enter_milestone", die)
        with pytest.raises(SystemExit):
            look_at_due()
    look_at_due()
    assert rollout_of() == 5
    pass_time(MINUTE)
    look_at_due()
    assert rollout_of() == 25


def test_the_time_while_it_was_paused_does_not_count(plan, pass_time):
    pass_time(DAY / 2)
    actions.pause_plan(PLACE, plan.pk, caller=WHO)
    pass_time(3 * DAY)
    look_at_due()
    assert rollout_of() == 5
    actions.resume_plan(PLACE, plan.pk, caller=WHO)
    pass_time(DAY / 2 - MINUTE)
    look_at_due()
    assert rollout_of() == 5
    pass_time(MINUTE)
    look_at_due()
    assert rollout_of() == 25


def test_a_window_of_the_week_is_waited_for(shop, pass_time):
    """Begun on a Tuesday at 08:00 UTC, 09:00 in Oslo; three days later is a Friday."""
    cart(5)
    window = {"zone": "Europe/Oslo", "days": [1, 2, 3, 4], "from": "09:00", "to": "16:00"}
    started(5, 25, intervalMinutes=3 * 1440, window=window)
    pass_time(3 * DAY)
    look_at_due()
    assert reload(ReleasePlan.objects.get()).look_at == timezone.now() + 3 * DAY
    pass_time(3 * DAY - MINUTE)
    look_at_due()
    assert rollout_of() == 5
    pass_time(MINUTE)
    look_at_due()
    assert rollout_of() == 25


def test_what_is_started_by_hand_is_not_started_by_itself(plan, pass_time):
    actions.set_transition(PLACE, Milestone.objects.get(plan=plan, place=0).pk, None, caller=WHO)
    pass_time(30 * DAY)
    look_at_due()
    assert rollout_of() == 5


def test_a_flag_that_is_off_is_waited_for(plan, pass_time):
    FlagEnvironment.objects.update(enabled=False)
    pass_time(DAY)
    look_at_due()
    assert (rollout_of(), state_of(plan)) == (5, ("running", "5 %"))
    FlagEnvironment.objects.update(enabled=True)
    pass_time(MINUTE)
    look_at_due()
    assert rollout_of() == 25


def test_nothing_is_done_during_maintenance(plan, pass_time):
    Installation.objects.update(is_in_maintenance=True)
    pass_time(DAY)
    look_at_due()
    assert rollout_of() == 5


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (
            lambda: Strategy.objects.update(title="mine"),
            "The plan's strategies of cart were changed by somebody.",
        ),
        (lambda: archive_flags("shop", ["cart"], caller=WHO), "cart has been archived."),
        (
            lambda: Grant.objects.filter(user__username="member").delete(),
            "member, who started it, may not change strategies there any more.",
        ),
        (lambda: User.objects.get(username="member").delete(), "member, who started it, has been deleted."),
    ],
    ids=["changed", "archived", "not allowed", "deleted"],
)
def test_what_happens_meanwhile_pauses_the_plan(shop, people, pass_time, happens, reason):
    cart(5)
    plan = started(5, 25, caller=Caller(user=people["member"]))
    happens()
    pass_time(DAY)
    look_at_due()
    found = reload(plan)
    assert (found.state, found.reason) == ("paused", reason)
    assert not Strategy.objects.exclude(parameters__rollout="5").exists()
    event = AuditEvent.objects.filter(type="release-plan-progressions-paused").latest("id")
    assert event.comment == reason


def test_a_plan_that_nobody_approved_is_not_continued(plan, pass_time):
    """Change requests are asked for meanwhile, and the plan is edited without one."""
    ProjectEnvironment.objects.update(required_approvals=1)
    actions.set_transition(
        PLACE, Milestone.objects.get(plan=plan, place=0).pk, {"intervalMinutes": 5}, caller=WHO
    )
    pass_time(DAY)
    look_at_due()
    assert (rollout_of(), state_of(plan)) == (5, ("running", "5 %"))


def test_an_approved_plan_takes_its_steps_without_a_request(plan, pass_time):
    ProjectEnvironment.objects.update(required_approvals=1)
    pass_time(DAY)
    look_at_due()
    assert rollout_of() == 25
