"""Release plans: only the active milestone reaches SDKs, and who has the flag keeps it from step to step."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict, InvalidOperation, ValidationError
from projects.models import FlagEnvironment, Strategy
from releases.derive import ProposedChange
from releases.models import Milestone, ReleasePlan
from releases.plans import actions
from releases.plans.actions import Steps
from releases.plans.add import add_plan, add_steps
from releases.requests.impact import predict_request
from releases.requests.propose import add_changes
from releases.templates.actions import create_template
from tests.support.for_each import for_each
from tests.support.plans import PLACE, WHO, cart, planned, rollout_of, started, state_of, strategy_of
from tests.support.playground import ask, live_flag

PLANS = "/api/admin/projects/shop/features/cart/environments/production/release-plans"
PROGRESSIONS = PLANS.replace("release-plans", "progressions")
STEPS = {"rollouts": [5, 25, 50, 100], "intervalMinutes": 1440}


def milestone(plan: ReleasePlan, place: int) -> str:
    return plan.milestones.all()[place].pk


def users_with(api: Any, flag: str = "cart") -> set[int]:
    """Which of 400 users have the flag."""
    body = {"environments": ["production"], "projects": ["shop"], "context": {}}
    users = ",".join(str(number) for number in range(400))
    answer = api["viewer"].post(
        "/api/admin/playground/advanced", body | {"context": {"userId": users}}, format="json"
    )
    [found] = [each for each in answer.json()["features"] if each["name"] == flag]
    rows = found["environments"]["production"]
    return {int(row["context"]["userId"]) for row in rows if row["isEnabled"]}


def test_nothing_changes_until_a_milestone_is_started(api, shop):
    cart(5)
    plan = (
        api["owner"]
        .post(PLANS, {"steps": STEPS | {"strategyId": str(strategy_of().pk)}}, format="json")
        .json()
    )
    assert (plan["state"], plan["activeMilestoneId"], plan["discriminator"]) == ("planned", None, "plan")
    assert [each["name"] for each in plan["milestones"]] == ["5 %", "25 %", "50 %", "100 %"]
    assert rollout_of() == 5
    second = plan["milestones"][1]["id"]
    assert api["owner"].post(f"{PLANS}/{plan['id']}/milestones/{second}/start").json()["startedAt"]
    assert rollout_of() == 25
    [listed] = api["reader"].get(PLANS).json()
    assert (listed["state"], listed["activeMilestoneId"]) == ("running", second)
    assert api["reader"].get(f"{PLANS}/{plan['id']}").json() == listed


def test_nobody_who_has_the_flag_loses_it(api, shop):
    """The strategy keeps its id, group and stickiness at every step."""
    cart(5)
    before, users = strategy_of(), users_with(api)
    plan = planned(5, 25, 50, 100)
    for place in range(4):
        actions.start_milestone(PLACE, plan.pk, milestone(plan, place), caller=WHO)
        now, more = strategy_of(), users_with(api)
        assert (now.pk, now.parameters["groupId"], now.parameters["stickiness"]) == (
            before.pk,
            "carts",
            "userId",
        )
        assert users <= more
        users = more
    assert len(users) == 400


def of_user(user: str) -> dict[str, Any]:
    return {
        "name": "default",
        "constraints": [{"contextName": "userId", "operator": "IN", "values": [user]}],
    }


def test_only_the_active_milestone_is_evaluated(api, shop):
    live_flag("cart", strategies=[])
    milestones = [
        {"name": "Us", "strategies": [of_user("42")]},
        {"name": "Others", "strategies": [of_user("1"), of_user("2")]},
    ]
    template = create_template({"name": "T", "milestones": milestones}, caller=WHO)
    plan = add_plan(PLACE, template.pk, caller=WHO)
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 0), caller=WHO)
    assert ask(api).json()["features"][0]["isEnabled"]
    [first] = Strategy.objects.values_list("pk", flat=True)
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 1), caller=WHO)
    assert not ask(api).json()["features"][0]["isEnabled"]
    assert Strategy.objects.count() == 2
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 0), caller=WHO)
    assert list(Strategy.objects.values_list("pk", flat=True)) == [first]


def test_strategies_that_are_not_the_plans_stay(shop):
    flag = cart(5)
    other = Strategy.objects.create(flag=flag, environment_id="production", name="default", sort_order=9)
    plan = add_steps(PLACE, "", Steps({"name": "flexibleRollout"}, [10, 20], None), caller=WHO)
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 0), caller=WHO)
    assert Strategy.objects.count() == 3
    actions.remove_plan(PLACE, plan.pk, caller=WHO)
    assert Strategy.objects.count() == 2
    assert Strategy.objects.filter(pk=other.pk).exists()
    assert not Milestone.objects.exists()


def test_a_removed_plan_may_leave_its_strategies(api, shop):
    cart(5)
    plan = started()
    refused = api["owner"].delete(f"{PLANS}/{plan.pk}?keepStrategies=True")
    assert (refused.status_code, refused.json()["details"]) == (
        400,
        [{"path": "keepStrategies", "message": 'must be true or false, not "True"'}],
    )
    assert api["owner"].delete(f"{PLANS}/{plan.pk}?keepStrategies=1").status_code == 200
    assert rollout_of() == 5
    assert not ReleasePlan.objects.exists()


def test_removing_a_done_plan_leaves_the_strategy_that_another_one_has_taken_over(api, shop):
    cart(5)
    done = started(5, 25, window=None, intervalMinutes=60)
    Milestone.objects.filter(plan=done).update(transition=None)
    actions.start_milestone(PLACE, done.pk, milestone(done, 1), caller=WHO)
    assert state_of(done)[0] == "done"
    running = started(25, 50)
    remove = ProposedChange("cart", "deleteReleasePlan", {"planId": done.pk})
    stored, predicted = predict_request(add_changes("shop", "production", [remove], caller=WHO))
    assert predicted == stored
    assert api["owner"].delete(f"{PLANS}/{done.pk}").status_code == 200
    assert (rollout_of(), state_of(running)) == (25, ("running", "25 %"))
    assert FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled
    assert api["owner"].delete(f"{PLANS}/{running.pk}").status_code == 200
    assert not Strategy.objects.filter(flag__name="cart").exists()


def test_each_step_is_an_event_with_who_changes(shop):
    cart(5)
    plan = started(5, 25)
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 1), caller=WHO)
    events = AuditEvent.objects.filter(type="release-plan-milestone-started").order_by("id")
    first, second = (event.after for event in events)
    assert first["whoChanges"]["changed"] == 0
    assert 0 < second["whoChanges"]["changed"] < second["whoChanges"]["users"] / 3
    assert [event.before for event in events] == [None, {"plan": "5 → 25 %", "milestone": "5 %"}]


def test_a_plan_is_done_with_a_last_milestone_that_waits_for_nothing(shop):
    cart(5)
    plan = planned(5, 25, window=None, intervalMinutes=60)
    Milestone.objects.filter(pk=milestone(plan, 1)).update(transition=None)
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 1), caller=WHO)
    assert state_of(plan) == ("done", "25 %")
    assert planned(25, 50).state == "planned"


def test_a_plan_is_done_once_its_last_milestone_no_longer_waits(api, shop):
    cart(5)
    plan = started(5)
    assert state_of(plan) == ("running", "5 %")
    assert api["owner"].delete(f"{PROGRESSIONS}/{milestone(plan, 0)}").status_code == 200
    assert state_of(plan) == ("done", "5 %")
    other = started(10)
    api["owner"].post(f"{PROGRESSIONS}/{other.pk}/pause", {}, format="json")
    api["owner"].delete(f"{PROGRESSIONS}/{milestone(other, 0)}")
    assert state_of(other) == ("paused", "10 %")
    assert api["owner"].post(f"{PROGRESSIONS}/{other.pk}/resume").json()["state"] == "done"


def test_a_plan_is_paused_resumed_and_stepped_back_by_hand(api, shop):
    cart(5)
    plan = started()
    api["member"].post(f"{PLANS}/{plan.pk}/milestones/{milestone(plan, 1)}/start")
    paused = api["member"].post(f"{PROGRESSIONS}/{plan.pk}/pause", {"reason": "Friday"}, format="json").json()
    assert (paused["state"], paused["reason"]) == ("paused", "Friday")
    assert paused["milestones"][1]["pausedAt"]
    assert api["member"].post(f"{PROGRESSIONS}/{plan.pk}/resume").json()["state"] == "running"
    assert api["member"].post(f"{PROGRESSIONS}/{plan.pk}/resume").status_code == 403
    actions.step_back(PLACE, plan.pk, caller=WHO)
    assert (rollout_of(), state_of(plan)) == (5, ("paused", "5 %"))
    with pytest.raises(InvalidOperation):
        actions.step_back(PLACE, plan.pk, caller=WHO)


def test_turning_off_pauses_too(shop):
    cart(5)
    plan = started()
    actions.turn_off(PLACE, plan.pk, caller=WHO)
    assert state_of(plan) == ("paused", "5 %")
    assert not FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled


def test_a_transition_is_changed_and_removed(api, shop):
    cart(5)
    plan = planned()
    url = f"{PROGRESSIONS}/{milestone(plan, 0)}"
    body = {"targetMilestone": milestone(plan, 1), "transitionCondition": {"intervalMinutes": 5}}
    changed = api["owner"].put(url, body, format="json").json()
    assert changed["milestones"][0]["transitionCondition"] == {"intervalMinutes": 5}
    wrong = api["owner"].put(url, body | {"targetMilestone": milestone(plan, 2)}, format="json")
    assert wrong.json()["details"][0]["path"] == "targetMilestone"
    empty = api["owner"].put(url, {"transitionCondition": {}}, format="json").json()
    assert empty["details"] == [
        {"path": "transitionCondition", "message": "needs intervalMinutes, window or both"}
    ]
    assert api["owner"].delete(url).status_code == 200
    assert api["owner"].get(PLANS).json()[0]["milestones"][0]["transitionCondition"] is None
    assert (
        api["owner"].put(url, {"transitionCondition": {"intervalMinutes": -1}}, format="json").status_code
        == 400
    )


@for_each("rollouts", [[], [0], [101], [5, 50, 25], [5, 5]])
def test_steps_lead_one_way(shop, rollouts):
    cart(5)
    with pytest.raises(ValidationError):
        add_steps(PLACE, str(strategy_of().pk), Steps({}, rollouts, None), caller=WHO)


def test_only_rollouts_are_taken_in_steps(shop):
    live_flag("cart")
    with pytest.raises(ValidationError):
        add_steps(PLACE, str(strategy_of().pk), Steps({}, [5], None), caller=WHO)


def test_unknown_templates_plans_and_milestones_and_a_second_plan_are_refused(api, shop):
    cart(5)
    for template in ("nothing", ""):
        assert api["owner"].post(PLANS, {"templateId": template}, format="json").status_code == 400
    assert api["owner"].post(PLANS, {}, format="json").status_code == 400

    plan = planned()
    with pytest.raises(Conflict):
        planned()

    live_flag("other")
    for url in (
        f"{PLANS}/nothing/milestones/{milestone(plan, 0)}/start",
        f"{PLANS}/{plan.pk}/milestones/nothing/start",
        f"{PLANS.replace('cart', 'other')}/{plan.pk}/milestones/{milestone(plan, 0)}/start",
        f"{PROGRESSIONS}/nothing/resume",
    ):
        assert api["owner"].post(url).status_code == 404, url
