"""An approval counts as long as its giver may give it: counted anew whenever it matters."""

from typing import Any

import pytest

from groups.models import Grant, User
from projects.models import FlagEnvironment, ProjectEnvironment
from releases.models import ReleasePlan, Schedule
from releases.plans.due import find_obstacle
from releases.schedules.due import apply_scheduled
from tests.support.cast import client, make_group, make_token
from tests.support.change_requests import REQUESTS, enter, guarded, reviewer, sent, turn
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db(transaction=True)
SOON = "2099-01-01T00:00:00Z"


def approved(api: Any, *changes: Any) -> dict[str, Any]:
    """A request of the owner's that pat has approved."""
    pat = reviewer("pat", "APPROVE_CHANGE_REQUEST")
    made = sent(api["owner"], *(changes or [turn(False)]))
    assert enter(pat, made, "Approved").json()["state"] == "Approved"
    return made


def lose_role() -> str:
    Grant.objects.filter(user__username="pat").delete()
    return "they may no longer approve changes of production in project shop."


def leave() -> str:
    User.objects.filter(username="pat").delete()
    return "no such person exists any more."


def be_disabled() -> str:
    User.objects.filter(username="pat").update(is_active=False)
    return "they can no longer log in."


def leave_group() -> str:
    group = make_group("Release managers")
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(approver_groups=[group.pk])
    return "only members of Release managers may approve changes of production in project shop."


LOSSES = [lose_role, leave, be_disabled, leave_group]


@pytest.mark.parametrize("lose", LOSSES)
def test_an_approval_lapses_with_its_giver(api, browse, cart, lose):
    made = approved(api)
    why = lose()
    document = api["owner"].get(f"{REQUESTS}/{made['id']}").json()
    assert document["approvals"][0]["lapsed"].endswith(f"does not count: {why}")
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))
    assert why in page
    assert "It needs 1 more approval by now." in page
    for state, more in (("Scheduled", {"scheduledAt": SOON}), ("Applied", {})):
        refused = enter(api["admin"], made, state, **more)
        assert refused.status_code in (403, 409)
        assert FlagEnvironment.objects.get(flag=cart, environment="production").enabled
    document = api["owner"].get(f"{REQUESTS}/{made['id']}").json()
    assert document["state"] == "In review"


def test_the_refusal_names_the_approval(api, cart):
    made = approved(api)
    why = lose_role()
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert (
        f"needs 1 approval now and has 0. The approval of pat does not count: {why}"
        in refused.json()["message"]
    )


def test_an_approval_counts_again_with_the_role(api, cart):
    made = approved(api)
    grants = list(Grant.objects.filter(user__username="pat"))
    lose_role()
    assert enter(api["admin"], made, "Applied").status_code == 409
    Grant.objects.bulk_create(grants)
    assert enter(api["admin"], made, "Applied").json()["state"] == "Applied"


def count_waiting(by: Any) -> int:
    total: int = by.get(f"{REQUESTS}/actionable").json()["total"]
    return total


def test_a_lapsed_request_waits_for_another_approval_and_not_to_be_applied(api, browse, cart):
    made = approved(api)
    rob, tim = reviewer("rob", "APPROVE_CHANGE_REQUEST"), reviewer("tim", "APPLY_CHANGE_REQUEST")
    assert (count_waiting(rob), count_waiting(tim)) == (0, 1)
    lose_role()
    assert (count_waiting(rob), count_waiting(tim)) == (1, 0)
    page = browse("admin").get(f"/projects/shop/change-requests/{made['id']}/").text
    assert 'value="Approved"' in page
    assert 'name="effect"' in page
    assert enter(rob, made, "Approved").json()["state"] == "Approved"
    assert (count_waiting(rob), count_waiting(tim)) == (0, 1)
    assert enter(tim, made, "Applied").json()["state"] == "Applied"


def test_what_has_enough_by_now_waits_to_be_applied_until_an_approval_lapses(api, cart):
    guarded(2)
    pat, tim = reviewer("pat", "APPROVE_CHANGE_REQUEST"), reviewer("tim", "APPLY_CHANGE_REQUEST")
    enter(pat, sent(api["owner"], turn(False)), "Approved")
    assert count_waiting(tim) == 0
    guarded(1)
    assert count_waiting(tim) == 1
    lose_role()
    assert count_waiting(tim) == 0


def test_a_schedule_is_suspended(api, cart):
    made = approved(api)
    assert enter(api["admin"], made, "Scheduled", scheduledAt=SOON).status_code == 200
    why = lose_role()
    schedule = Schedule.objects.get()
    schedule.at = schedule.request.created_at
    schedule.save()
    apply_scheduled(schedule.pk)
    schedule.refresh_from_db()
    assert (schedule.status, why in schedule.reason) == ("suspended", True)
    assert FlagEnvironment.objects.get(flag=cart, environment="production").enabled


PLAN = {
    "name": "Roll out",
    "milestones": [
        {"name": "Few", "strategies": [{"name": "default"}]},
        {
            "name": "All",
            "strategies": [
                {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId"}}
            ],
        },
    ],
}


def plan_of(by: Any) -> str:
    answer = by.post("/api/admin/release-plan-templates", PLAN, format="json")
    assert answer.status_code in (200, 201), answer.content
    return answer.json()["id"]


def start_plan(api: Any) -> ReleasePlan:
    """A plan whose first milestone pat has approved."""
    template = plan_of(api["admin"])
    add = {"feature": "cart", "action": "addReleasePlan", "payload": {"templateId": template}}
    made = approved(api, add)
    assert enter(api["admin"], made, "Applied").status_code == 200
    plan = ReleasePlan.objects.get()
    step = {"planId": plan.pk, "milestoneId": plan.milestones.all()[0].pk}
    pat = User.objects.get(username="pat")
    made = sent(api["owner"], {"feature": "cart", "action": "startMilestone", "payload": step})
    assert enter(client(make_token("personal", user=pat)), made, "Approved").status_code == 200
    assert enter(api["admin"], made, "Applied").status_code == 200
    return ReleasePlan.objects.get()


def test_a_plan_whose_approval_lapsed_takes_no_step(api, cart):
    plan = start_plan(api)
    why = lose_role()
    assert why in find_obstacle(plan)
    url = f"/api/admin/projects/shop/features/cart/environments/production/release-plans/{plan.pk}/milestones"
    second = plan.milestones.all()[1]
    refused = api["member"].post(f"{url}/{second.pk}/start")
    assert refused.status_code == 403
    plan.refresh_from_db()
    assert plan.active.name == "Few"
