"""Strategies of a plan's milestones are changed while it runs."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict, NotFound, ValidationError
from groups.access import Caller
from projects.models import ProjectEnvironment
from releases.derive import ProposedChange
from releases.gate_refusal import NeedsChangeRequest
from releases.models import Milestone, ReleasePlan
from releases.plans import actions
from releases.plans.actions import edit_milestone_strategy
from releases.plans.due import has_own_strategies
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from tests.support.plans import PLACE, WHO, cart, reload, rollout_of, started, strategy_of

pytestmark = pytest.mark.django_db(transaction=True)
PARAMETERS = {"stickiness": "userId", "groupId": "carts"}
PATH = "/api/admin/projects/shop/features/cart/environments/production/release-plans"


@pytest.fixture
def plan(shop: Any) -> ReleasePlan:
    cart(5)
    return started(10, 50, 100)


def milestone(plan: ReleasePlan, place: int) -> Milestone:
    return Milestone.objects.get(plan=plan, place=place)


def keys(plan: ReleasePlan, place: int) -> tuple[str, str, str]:
    named = milestone(plan, place)
    return plan.pk, named.pk, named.strategies[0]["id"]


def share(rollout: int) -> dict[str, Any]:
    return {"parameters": PARAMETERS | {"rollout": str(rollout)}}


def edit(plan: ReleasePlan, place: int, values: Any, caller: Caller = WHO) -> Milestone:
    return edit_milestone_strategy(PLACE, *keys(plan, place), values, caller=caller)


def test_a_later_milestone_counts_once_it_starts(plan):
    edit(plan, 1, share(30))
    assert rollout_of() == 10
    actions.start_milestone(PLACE, plan.pk, milestone(plan, 1).pk, caller=WHO)
    assert rollout_of() == 30


def test_the_active_milestone_counts_at_once_and_the_strategy_keeps_its_id(plan):
    before = strategy_of().pk
    edit(plan, 0, share(15) | {"title": "Early birds"})
    strategy = strategy_of()
    assert (strategy.pk, strategy.title, rollout_of()) == (before, "Early birds", 15)
    assert has_own_strategies(reload(plan))
    event = AuditEvent.objects.get(type="release-plan-milestone-strategy-updated")
    assert (event.before["parameters"]["rollout"], event.after["parameters"]["rollout"]) == ("10", "15")


def test_what_changes_nothing_leaves_no_event(plan):
    edit(plan, 0, share(10))
    assert not AuditEvent.objects.filter(type="release-plan-milestone-strategy-updated").exists()


def test_by_api(api, plan):
    plan_id, milestone_id, strategy_id = keys(plan, 1)
    url = f"{PATH}/{plan_id}/milestones/{milestone_id}/strategies/{strategy_id}"
    answer = api["owner"].put(url, share(40), format="json")
    assert answer.status_code == 200, answer.json()
    assert (answer.json()["id"], answer.json()["parameters"]["rollout"]) == (strategy_id, "40")
    refused = api["owner"].put(url, {"segments": [77]}, format="json")
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "segments[0]")


def test_unknown_strategies_are_refused(plan):
    with pytest.raises(NotFound):
        edit_milestone_strategy(PLACE, *keys(plan, 0)[:2], "unknown", {}, caller=WHO)
    with pytest.raises(ValidationError):
        edit(plan, 0, {"name": "unknown"})


@pytest.fixture
def member(plan: ReleasePlan, people: Any) -> Caller:
    """May change strategies, but not skip the requests that production takes."""
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    ReleasePlan.objects.update(approved=True)
    return Caller(user=people["member"])


def test_the_active_milestone_needs_a_request_which_is_offered(plan, member):
    with pytest.raises(NeedsChangeRequest) as refused:
        edit(plan, 0, share(90), member)
    [change] = refused.value.gated.changes
    assert rollout_of() == 10
    assert milestone(plan, 0).strategies[0]["parameters"]["rollout"] == "10"
    request = add_changes("shop", "production", [change], caller=member)
    for state, caller in (("In review", member), ("Approved", WHO), ("Applied", WHO)):
        set_state("shop", request.pk, state, caller=caller)
    assert rollout_of() == 90
    assert reload(plan).approved


def test_editing_a_later_milestone_ends_the_approval(plan, member):
    edit(plan, 1, share(60), member)
    assert not reload(plan).approved


def test_an_edit_is_reviewed_by_what_the_plan_comes_to(plan, member):
    payload = dict(zip(("planId", "milestoneId", "id"), keys(plan, 1), strict=True)) | share(60)
    change = ProposedChange("cart", "updateMilestoneStrategy", payload)
    request = add_changes("shop", "production", [change], caller=member)
    sent = set_state("shop", request.pk, "In review", caller=member)
    assert sent.impact["changed"] > 0.8 * sent.impact["users"]


def test_an_edit_since_is_a_conflict(plan, member):
    payload = dict(zip(("planId", "milestoneId", "id"), keys(plan, 1), strict=True)) | share(60)
    change = ProposedChange("cart", "updateMilestoneStrategy", payload)
    request = add_changes("shop", "production", [change], caller=member)
    edit(plan, 1, share(70))
    set_state("shop", request.pk, "In review", caller=member)
    set_state("shop", request.pk, "Approved", caller=WHO)
    with pytest.raises(Conflict):
        set_state("shop", request.pk, "Applied", caller=WHO)
    assert milestone(plan, 1).strategies[0]["parameters"]["rollout"] == "70"
