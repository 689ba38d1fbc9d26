"""The pages of release plans: how far a plan is, what it waits for, and a step that asks once with who changes."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from projects.applications.impact_metrics import Sample, make_series, write_samples
from projects.models import FlagEnvironment, ProjectEnvironment, Strategy
from releases.models import ChangeRequest, ReleasePlan, ReleaseTemplate, Safeguard
from releases.plans.actions import pause_plan
from releases.plans.forms import list_steps
from tests.support.editor_form import Form
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.plans import PLACE, WHO, cart, planned, rollout_of, started, state_of, strategy_of
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
FLAG = "/projects/shop/features/cart/"
NEW = f"{FLAG}environments/production/plans/new/"


def url(plan: ReleasePlan, page: str = "") -> str:
    return f"{FLAG}plans/{plan.pk}/{page}"


@pytest.fixture
def owner(browse: Any, shop: Any) -> Any:
    return browse("owner")


@pytest.fixture
def plan(shop: Any) -> ReleasePlan:
    cart(5)
    return started(5, 50)


@pytest.fixture
def ten_percent(shop: Any) -> None:
    cart(10)


def test_a_strategy_is_taken_in_steps(owner):
    cart(5)
    form = {"rollouts": "5, 50", "interval": "60", "window": "1-4", "zone": "Europe/Oslo", "comment": "Go"}
    assert save(owner, when="steps", **form).url == FLAG
    assert state_of(ReleasePlan.objects.get()) == ("running", "5 %")
    page = page_text(owner.get(FLAG))
    assert "Step 1 of 2" in page
    assert "Before 50 % 1 hour at 5 %" in page
    assert "Mon to Thu, 09:00–16:00 Europe/Oslo" in page


def test_a_running_plan_is_paused_resumed_and_turned_off(owner, plan):
    owner.post(url(plan, "pause"), {"comment": "Friday"})
    assert "Friday" in page_text(owner.get(FLAG))
    owner.post(url(plan, "resume/"))
    assert state_of(plan) == ("running", "5 %")
    owner.post(url(plan, "start/"))
    assert rollout_of() == 50
    owner.post(url(plan, "back/"))
    assert (rollout_of(), state_of(plan)) == (5, ("paused", "5 %"))
    owner.post(url(plan, "off/"))
    assert not FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled
    owner.post(url(plan, "remove/"), {"keep": "on"})
    assert (ReleasePlan.objects.count(), rollout_of()) == (0, 5)


def test_the_page_of_a_plan_lists_milestones_and_takes_safeguards(browse, shop):
    cart(5)
    plan, owner = planned(5, 50), browse("owner")
    page = page_text(owner.get(url(plan)))
    assert "On for 50 % of users, by userId" in page
    form = {
        "metric": "errors",
        "title": "Errors",
        "aggregation": "avg",
        "threshold": "2",
        "source": "internal",
    }
    assert owner.post(url(plan, "safeguard"), form).status_code == 302
    assert "Errors: waits for numbers." in page_text(owner.get(url(plan)))
    owner.post(url(plan, "safeguard"), {"remove": Safeguard.objects.get().pk})
    assert not Safeguard.objects.exists()


def test_a_safeguard_is_drawn_with_its_limit_and_steps(browse, plan):
    Safeguard.objects.create(
        plan=plan, metric="errors", title="Errors", aggregation="avg", time_range="hour", threshold=3
    )
    begun = timezone.now() - timedelta(hours=2)
    plan.milestones.filter(place=0).update(started_at=begun)
    ReleasePlan.objects.update(since=begun, numbers_from=begun)
    with connection.cursor() as cursor:
        for minutes in range(0, 120, 10):
            sample = {
                make_series("errors", {}, environment="production"): Sample("gauge", "", 1.0 + minutes / 30)
            }
            write_samples(cursor, sample, now=begun + timedelta(minutes=minutes))
    viewer = browse("viewer")
    text = viewer.get(FLAG).text
    assert '<polyline class="measured" points="' in text
    assert "limit 3" in text
    assert '<line class="step" x1="0.0%"' in viewer.get(url(plan)).text


def test_forms_and_requests_say_what_becomes_of_the_plan(browse, shop):
    cart(5)
    started(5, 25, 50)
    owner, at_step_1 = browse("owner"), "Release plan 5 → 25 → 50 % is at step 1; "
    assert f"{at_step_1}its next step, 25 %, replaces this." in page_text(save(owner, do="refresh"))
    ProjectEnvironment.objects.update(required_approvals=1)
    assert f"{at_step_1}this would pause it before 25 %." in page_text(save(owner, do="refresh"))
    off = owner.get(f"{FLAG}switch?environment=production&enabled=off")
    assert f"{at_step_1}it waits while the flag is off." in page_text(off)
    archive = page_text(owner.get("/projects/shop/features/archive?name=cart"))
    assert "is at step 1 in production; it stops while the flag is archived." in archive
    sent = save(owner, send_for_review="yes")
    assert f"{at_step_1}this would pause it before 25 %." in page_text(owner.get(sent.url))
    ReleasePlan.objects.update(state="done")
    assert "Release plan 5" not in page_text(owner.get(sent.url))


def test_who_may_only_read_sees_no_buttons(browse, plan):
    pause_plan(PLACE, plan.pk, caller=WHO)
    reader = browse("reader")
    page = page_text(reader.get(FLAG))
    assert "Paused at step 1 of 2" in page
    assert "Turn off…" not in page
    assert reader.get(url(plan, "start/")).status_code == 403
    assert reader.post(url(plan, "start/")).status_code == 403
    assert browse("outsider").get(url(plan)).status_code == 404
    assert reader.get(url(plan, "dance/")).status_code in (403, 404)


def test_where_changes_need_a_request_a_start_becomes_one(browse, shop):
    cart(5)
    plan, owner = planned(50, 100), browse("owner")
    ProjectEnvironment.objects.update(required_approvals=1)
    refused = owner.post(url(plan, "start/"))
    assert refused.status_code == 403
    assert "Add to change request" in refused.text
    owner.post(url(plan, "start/"), {"send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert (request.state, request.changes.get().action) == ("In review", "startMilestone")
    assert rollout_of() == 5


def test_plans_are_listed_found_by_their_flag_and_named_by_their_strategy(browse, owner, plan):
    assert "cart" in page_text(owner.get("/release-plans/"))
    assert "No release plans." in page_text(browse("outsider").get("/release-plans/"))
    assert plan.name in owner.get("/release-plans/?format=csv").getvalue().decode()

    assert url(plan) in browse("owner").get("/search/?q=cart").text
    assert url(plan) not in browse("outsider").get("/search/?q=cart").text

    page = owner.get(FLAG).text
    assert f'href="{url(plan)}">View<' in page
    assert "/strategies/edit" not in page.partition('class="strategy"')[2].partition("</div>\n</div>")[0]
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy_of().pk}"
    assert f"This is the strategy of release plan {plan.name}" in page_text(owner.get(address))
    ReleasePlan.objects.update(state="done")
    assert "This is the strategy of release plan" not in page_text(owner.get(address))


def test_templates_are_made_of_steps_listed_archived_and_deleted(browse, owner):
    form: dict[str, Any] = {"name": "Careful", "project": "shop", "rollouts": "5, 100", "interval": "1440"}
    made = owner.post("/release-templates/new/", form)
    template = ReleaseTemplate.objects.get()
    assert made.url == f"/release-templates/{template.pk}/"
    assert "Next step: after 1 day" in page_text(owner.get(made.url))
    assert "Careful" in page_text(owner.get("/release-templates/"))
    assert browse("viewer").get("/release-templates/new/").status_code == 403
    assert browse("viewer").post(f"{made.url}remove", {"do": "delete"}).status_code == 403
    assert owner.post("/release-templates/new/", form | {"rollouts": "many"}).status_code == 400
    live = {"template": template.pk}
    cart(5)
    assert "Careful 5 → 100 %" in page_text(owner.get(NEW))
    assert owner.post(NEW, live).status_code == 302
    owner.post(f"{made.url}remove", {"do": "delete"})
    assert not ReleaseTemplate.objects.exists()


def save(owner: Any, **form: str) -> Any:
    strategy = strategy_of()
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"
    sent = Form(owner.get(address).text).sent | {"p-rollout": ["50"]}
    return owner.post(address, sent | form)


def test_the_form_of_a_strategy_offers_steps_and_takes_the_first(owner, ten_percent):
    before = strategy_of()
    steps = {"when": "steps", "rollouts": "15, 25, 50", "interval": "1440"}
    saved = save(owner, **steps)
    assert (saved.status_code, saved.url) == (302, FLAG)
    now = strategy_of()
    assert (now.pk, rollout_of(), now.parameters["groupId"]) == (before.pk, 15, "carts")
    assert state_of(ReleasePlan.objects.get()) == ("running", "15 %")
    refused = save(owner, **steps | {"rollouts": "20"})
    assert refused.status_code == 400
    assert "has a release plan" in page_text(refused)


@for_each(
    ("present", "target", "steps"),
    [
        (10, 50, [15, 25, 50]),
        (50, 100, [75, 100]),
        (60, 80, [65, 70, 75, 80]),
        (50, 61, [55, 61]),
        (98, 100, [99, 100]),
        (99, 100, [100]),
    ],
)
def test_steps_lead_from_now_to_the_target(present: int, target: int, steps: list[int]) -> None:
    assert list_steps(present, target) == steps


@for_each(
    ("share", "offered"),
    [("50", "15, 25, 50"), ("5", "7, 5"), ("10", "5, 10"), ("100", "15, 25, 50, 75, 100"), ("0", "")],
)
def test_steps_are_offered_for_each_percentage(owner, ten_percent, share, offered):
    page = page_text(save(owner, **{"p-rollout": share, "do": "refresh"}))
    assert ("Steps need a rollout percentage." in page) is (not offered)
    fields = Form(save(owner, **{"p-rollout": share, "do": "refresh"}).text).sent
    assert fields["rollouts"] == [offered]
    kept = save(owner, **{"p-rollout": "40", "rollouts": "12, 40", "do": "refresh"})
    assert Form(kept.text).sent["rollouts"] == ["12, 40"]


def test_a_flag_that_is_on_for_everyone_is_rolled_out_again_in_steps(owner, shop):
    live_flag("cart", project="shop", strategies=[{"name": "default"}])
    before = strategy_of()
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={before.pk}"
    sent = Form(owner.get(address).text).sent
    assert (sent["p-rollout"], sent["rollouts"]) == (["100"], ["5, 15, 25, 50, 75, 100"])
    owner.post(address, sent)
    assert strategy_of().name == "default"
    assert owner.post(address, sent | {"when": "steps", "rollouts": "25, 100"}).status_code == 302
    now = strategy_of()
    assert (now.pk, now.name, now.parameters["rollout"]) == (before.pk, "flexibleRollout", "25")
    assert state_of(ReleasePlan.objects.get()) == ("running", "25 %")


def narrowed(**form: str) -> dict[str, Any]:
    country = {"c": "0", "c-0-field": "country", "c-0-operator": "IN", "c-0-values": "DE"}
    return {**country, "rest-shown": "yes", "keep-rest": "yes", "when": "steps", "rollouts": "15, 50", **form}


def test_users_of_one_country_are_taken_in_steps_and_the_others_keep_the_present_rule(owner, ten_percent):
    before = strategy_of()
    page = page_text(foreseen(owner, **narrowed()))
    assert re.search(r"15 % now \d+ off → on", page)
    assert "on → off" not in page
    assert save(owner, **narrowed()).status_code == 302
    some, others = Strategy.objects.order_by("sort_order", "created_at")
    assert some.sort_order == others.sort_order, "or another strategy could come between them"
    assert (some.pk, some.parameters["rollout"], some.constraints[0]["values"]) == (before.pk, "15", ["DE"])
    assert (others.parameters["rollout"], others.constraints) == ("10", [])
    assert ReleasePlan.objects.get().strategy_ids == [str(before.pk)]


def test_a_request_for_such_steps_keeps_the_present_rule_too(owner, ten_percent):
    ProjectEnvironment.objects.update(required_approvals=1)
    assert save(owner, **narrowed(send_for_review="yes")).status_code == 302
    actions = ChangeRequest.objects.get().changes.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["addStrategy", "startMilestone"]
    assert Strategy.objects.count() == 1


@pytest.mark.parametrize("button", ["send_for_review", "add_to_request"])
def test_where_changes_need_a_request_steps_become_one_with_a_plan(owner, button, ten_percent):
    ProjectEnvironment.objects.update(required_approvals=1)
    asked = page_text(save(owner, do="refresh"))
    assert "A time can be set on the request, once it is approved." in asked
    assert "Needs review" in asked
    steps = {"when": "steps", "rollouts": "15, 50", "interval": "1440"}
    sent = save(owner, **steps, **{button: "yes"})
    request, plan = ChangeRequest.objects.get(), ReleasePlan.objects.get()
    assert sent.url == f"/projects/shop/change-requests/{request.pk}/"
    assert request.changes.get().action == "startMilestone"
    assert request.state == ("In review" if button == "send_for_review" else "Draft")
    assert (state_of(plan), rollout_of()) == (("planned", None), 10)
    again = save(owner, **steps, **{button: "yes"})
    assert again.status_code == 403
    assert "has a release plan" in page_text(again)
    assert ChangeRequest.objects.count() == 1


def test_who_may_skip_requests_starts_steps_with_a_reason(browse, ten_percent):
    ProjectEnvironment.objects.update(required_approvals=1)
    steps = {"when": "steps", "rollouts": "15, 50", "interval": "1440"}
    save(browse("admin"), **steps, skip_change_request="yes", comment="Now")
    assert (state_of(ReleasePlan.objects.get()), rollout_of()) == (("running", "15 %"), 15)


def foreseen(owner: Any, **form: str) -> Any:
    strategy = strategy_of()
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"
    sent = Form(owner.get(address).text).sent | {"p-rollout": ["50"], "interval": "1440"} | form
    return owner.post(f"/in-steps{address}", sent, headers={"HX-Request": "true"})


def test_the_form_of_a_strategy_says_who_changes_at_each_step(owner, ten_percent):
    page = page_text(foreseen(owner, rollouts="15, 50", when="steps"))
    first, second = page.rsplit("50 %", 1)
    assert "15 % now" in first
    assert re.search(r"\d{3} off → on", first)
    assert re.search(r"3,\d{3} off → on", second)
    assert "Of 10,000 generated users" in page
    assert rollout_of() == 10
    alone = page_text(
        owner.post(
            f"/in-steps{FLAG}strategies/new?environmentId=production",
            {"name": "flexibleRollout", "p-rollout": "50", "rollouts": "5, 50", "interval": "60"},
        )
    )
    assert "Back to the form" in alone
    assert not ReleasePlan.objects.exists()


@for_each(
    ("form", "message"),
    [
        ({"rollouts": "50, 15, 60"}, "must increase, or decrease, from step to step"),
        ({"rollouts": "many"}, "must be numbers, such as"),
        ({"rollouts": "5, 50", "p-rollout": "200"}, "use a whole number from 0 to 100"),
        ({"rollouts": "5, 50", "interval": "soon"}, "must be minutes"),
    ],
)
def test_steps_that_cannot_be_taken_are_not_foreseen(browse, form, message, ten_percent):
    assert message in page_text(foreseen(browse("owner"), **form))


def test_a_plan_from_the_form_begins_with_its_safeguard(owner, ten_percent):
    steps = {"when": "steps", "rollouts": "15, 50", "interval": "1440", "pause_metric": "errors"}
    assert "Enter the limit at which errors pauses the plan." in page_text(save(owner, **steps))
    assert not ReleasePlan.objects.exists()
    save(owner, pause_threshold="5 %", pause_range="day", **steps)
    safeguard = Safeguard.objects.get()
    assert (safeguard.metric, safeguard.operator, safeguard.threshold) == ("errors", ">", 0.05)
    assert (safeguard.aggregation, safeguard.time_range) == ("avg", "day")
    assert state_of(safeguard.plan) == ("running", "15 %")
    assert safeguard.plan.pause_if_broken


def test_a_plan_from_the_form_pauses_if_an_expectation_breaks(owner, ten_percent):
    assert "Pause if an expectation breaks" in page_text(save(owner, do="refresh"))
    save(owner, when="steps", rollouts="15, 50", pause_if_broken="on")
    assert ReleasePlan.objects.get().pause_if_broken


def test_the_page_of_a_plan_changes_what_its_steps_wait_for(browse, shop):
    cart(5)
    plan, owner = started(5, 50, intervalMinutes=90), browse("owner")
    first = plan.milestones.all()[0]
    assert "Next step: after 90 minutes" in page_text(owner.get(url(plan)))
    address = url(plan, f"milestones/{first.pk}")
    for interval, stored in (("keep", {"intervalMinutes": 90}), ("60", {"intervalMinutes": 60}), ("", None)):
        assert owner.post(address, {"interval": interval}).status_code == 302
        first.refresh_from_db()
        assert first.transition == stored
    assert browse("reader").post(address, {"interval": "60"}).status_code == 403
    assert "when what follows 5 % starts" not in page_text(browse("reader").get(url(plan)))
