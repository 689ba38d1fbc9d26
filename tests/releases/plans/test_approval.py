"""Where changes need a change request, a plan is reviewed once, with all its steps, and again when it is edited."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.models import FlagEnvironment, ProjectEnvironment
from releases.derive import ProposedChange
from releases.gate_refusal import NeedsChangeRequest
from releases.models import ChangeRequest, Milestone, ReleasePlan
from releases.plans import actions
from releases.plans.actions import edit_milestone_strategy
from releases.plans.due import look_at_due
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from releases.safeguards.actions import note_alert, set_safeguard
from releases.safeguards.serializers import SafeguardBody
from tests.support.plans import DAY, PLACE, cart, planned, reload, rollout_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def member(shop: Any, people: Any) -> Caller:
    """Somebody who may change strategies, but not skip change requests."""
    cart(5)
    guard([])
    return Caller(user=people["member"])


def guard(rules: list[Any]) -> None:
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1, approval_rules=rules)


def request_of(caller: Caller, action: str, **payload: Any) -> ChangeRequest:
    request = add_changes("shop", "production", [ProposedChange("cart", action, payload)], caller=caller)
    return set_state("shop", request.pk, "In review", caller=caller)


def apply_approved(request: ChangeRequest) -> None:
    for state in ("Approved", "Applied"):
        set_state("shop", request.pk, state, caller=Caller.system())


def approved(caller: Caller, *rollouts: int) -> ReleasePlan:
    plan = planned(*rollouts, caller=caller)
    apply_approved(request_of(caller, "startMilestone", planId=plan.pk, milestoneId=key(plan, 0)))
    return reload(plan)


def key(plan: ReleasePlan, place: int) -> str:
    return Milestone.objects.get(plan=plan, place=place).pk


def test_starting_needs_a_request_which_is_offered(member):
    plan = planned(50, 100, caller=member)
    with pytest.raises(NeedsChangeRequest) as refused:
        actions.start_milestone(PLACE, plan.pk, key(plan, 0), caller=member)
    payload = {"planId": plan.pk, "milestoneId": key(plan, 0)}
    assert refused.value.gated.changes == [ProposedChange("cart", "startMilestone", payload)]
    assert rollout_of() == 5


@pytest.mark.parametrize(
    "act",
    [
        lambda plan, member: actions.start_milestone(PLACE, plan.pk, key(plan, 2), caller=member),
        lambda plan, member: actions.turn_off(PLACE, plan.pk, caller=member),
        lambda plan, member: actions.remove_plan(PLACE, plan.pk, caller=member),
        lambda plan, member: edit_milestone_strategy(
            PLACE, plan.pk, key(plan, 0), plan.active.strategies[0]["id"], {"disabled": True}, caller=member
        ),
    ],
    ids=["start", "turn off", "remove", "edit"],
)
def test_nothing_is_written_before_a_step_is_refused(
    member: Caller, act: Callable[[ReleasePlan, Caller], Any]
) -> None:
    plan = approved(member, 10, 20, 30)
    with CaptureQueriesContext(connection) as queries, pytest.raises(NeedsChangeRequest):
        act(plan, member)
    written = [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert written == []


def test_an_approved_plan_goes_on_without_another_request(member, pass_time):
    plan = approved(member, 10, 20, 30)
    assert (rollout_of(), plan.approved, plan.state) == (10, True, "running")
    pass_time(DAY)
    actions.start_milestone(PLACE, plan.pk, key(plan, 1), caller=member)
    assert rollout_of() == 20
    actions.step_back(PLACE, plan.pk, caller=member)
    assert rollout_of() == 10


def test_steps_are_not_taken_out_of_order(member):
    plan = approved(member, 10, 20, 30)
    with pytest.raises(NeedsChangeRequest):
        actions.start_milestone(PLACE, plan.pk, key(plan, 2), caller=member)
    assert rollout_of() == 10


def test_an_edited_plan_is_no_longer_approved(member):
    plan = approved(member, 10, 20, 30)
    actions.set_transition(PLACE, key(plan, 0), {"intervalMinutes": 1}, caller=member)
    assert not reload(plan).approved
    with pytest.raises(NeedsChangeRequest):
        actions.start_milestone(PLACE, plan.pk, key(plan, 1), caller=member)
    assert rollout_of() == 10


def test_an_edit_that_is_approved_leaves_the_plan_approved(member):
    plan = approved(member, 10, 20, 30)
    changed = {"sourceMilestone": key(plan, 0), "transitionCondition": {"intervalMinutes": 1}}
    apply_approved(request_of(member, "changeMilestoneProgression", **changed))
    assert reload(plan).approved
    assert Milestone.objects.get(plan=plan, place=0).transition == {"intervalMinutes": 1}


def test_starting_while_the_flag_is_off_approves_nothing(member):
    """Nothing is answered differently then, so the gate lets it through."""
    FlagEnvironment.objects.filter(flag__name="cart").update(enabled=False)
    plan = planned(10, 100, caller=member)
    actions.start_milestone(PLACE, plan.pk, key(plan, 0), caller=member)
    assert not reload(plan).approved


def test_who_may_skip_requests_approves_by_starting(member):
    plan = planned(10, 100, caller=member)
    admin = Caller.system().asking(skips_requests=True)
    actions.start_milestone(PLACE, plan.pk, key(plan, 0), caller=admin)
    assert reload(plan).approved


def test_editing_a_plan_without_its_request_is_recorded_once(member):
    plan = approved(member, 10, 20)
    skipped = AuditEvent.objects.filter(type="change-request-skipped", feature="cart")
    admin = Caller.system().asking(skips_requests=True)
    actions.set_transition(PLACE, key(plan, 0), None, caller=admin)
    assert skipped.count() == 1
    for place in (0, 1):  # the active one changes answers
        milestone = Milestone.objects.get(plan=plan, place=place)
        [strategy], values = milestone.strategies, {"parameters": {"rollout": "40"}}
        keys = plan.pk, milestone.pk, strategy["id"]
        edit_milestone_strategy(PLACE, *keys, values, caller=admin)
    assert skipped.count() == 3
    assert reload(plan).approved


def test_a_plan_is_reviewed_with_all_its_steps(member):
    """Its first step changes 1 % of the users, its last one nearly all."""
    guard([{"condition": "changesUsers", "percent": 50, "requiredApprovals": 3}])
    plan = planned(6, 99, caller=member)
    request = request_of(member, "startMilestone", planId=plan.pk, milestoneId=key(plan, 0))
    assert request.required_approvals == 3
    assert request.impact["changed"] > request.impact["users"] / 2


def test_a_plan_is_removed_by_request(member):
    plan = approved(member, 10, 20)
    with pytest.raises(NeedsChangeRequest):
        actions.remove_plan(PLACE, plan.pk, caller=member)
    request = request_of(member, "deleteReleasePlan", planId=plan.pk)
    apply_approved(request)
    assert not ReleasePlan.objects.exists()


def test_a_request_to_start_conflicts_with_an_edit_since(member):
    plan = planned(10, 20, caller=member)
    request = request_of(member, "startMilestone", planId=plan.pk, milestoneId=key(plan, 0))
    actions.set_transition(PLACE, key(plan, 0), {"intervalMinutes": 1}, caller=member)
    from flagadmin.core.errors import Conflict

    with pytest.raises(Conflict):
        apply_approved(request)
    assert rollout_of() == 5


ON_ALERT = {"impactMetric": {"metricName": "Down", "source": "alert"}, "action": {"type": "stepBack"}}


def at_second_step(member: Caller) -> ReleasePlan:
    plan = approved(member, 10, 20)
    return actions.start_milestone(PLACE, plan.pk, key(plan, 1), caller=Caller.system())


def breach(plan: ReleasePlan) -> tuple[int, str]:
    note_alert("Down", {}, fires=True, caller=Caller.system())
    look_at_due()
    return rollout_of(), reload(plan).state


def test_a_breached_safeguard_that_was_approved_steps_back(member):
    plan = at_second_step(member)
    apply_approved(request_of(member, "changeReleasePlanSafeguard", planId=plan.pk, safeguard=ON_ALERT))
    assert breach(plan) == (10, "paused")


def test_one_that_was_not_approved_only_pauses(member):
    plan = at_second_step(member)
    body = SafeguardBody(data=ON_ALERT)
    body.is_valid(raise_exception=True)
    set_safeguard(PLACE, plan.pk, body.validated_data, caller=member)
    assert breach(plan) == (20, "paused")


def test_the_page_of_a_request_stays_when_its_plan_is_gone(member, browse):
    plan = planned(10, 20, caller=member)
    request = request_of(member, "startMilestone", planId=plan.pk, milestoneId=key(plan, 0))
    apply_approved(request)
    ReleasePlan.objects.all().delete()
    page = browse("admin").get(f"/projects/shop/change-requests/{request.pk}/")
    assert page.status_code == 200
