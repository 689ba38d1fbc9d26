"""Release plans in few clicks: begun from the strategy form, and stepped back when a safeguard has paused one."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from groups.access import Caller
from projects.applications.impact_metrics import Sample, make_series, write_samples
from projects.models import Flag, Strategy
from releases.models import ReleasePlan, Safeguard
from releases.plans.actions import Steps, start_milestone
from releases.plans.add import add_steps
from releases.plans.due import look_at_due
from releases.plans.queries import FlagPath
from tests.browser.journeys import Clicks
from tests.browser.looks import Window
from tests.support.playground import live_flag

FLAG = "/projects/checkout/features/zz-cart"
PLACE = FlagPath("checkout", "zz-cart", "production")


@pytest.fixture
def cart(scenery) -> Flag:
    """On for 0 % in production of the checkout."""
    parameters = {"rollout": "0", "stickiness": "userId", "groupId": "zz-cart"}
    return live_flag(
        "zz-cart", project="checkout", strategies=[{"name": "flexibleRollout", "parameters": parameters}]
    )


def share() -> str:
    text: str = Strategy.objects.get(flag__name="zz-cart", environment="production").parameters["rollout"]
    return text


def paused_at_half() -> ReleasePlan:
    """A plan whose safeguard has paused it at its second step."""
    strategy = Strategy.objects.get(flag__name="zz-cart", environment="production")
    steps, caller = Steps({}, (5, 50, 100), {"intervalMinutes": 1440}), Caller.system()
    plan = add_steps(PLACE, str(strategy.pk), steps, caller=caller)
    for milestone in list(plan.milestones.all())[:2]:
        start_milestone(PLACE, plan.pk, milestone.pk, caller=caller)
    Safeguard.objects.create(
        plan=plan,
        metric="failures",
        title="Failed payments",
        aggregation="avg",
        time_range="hour",
        threshold=1,
    )
    begun = timezone.now() - timedelta(hours=2)
    ReleasePlan.objects.filter(pk=plan.pk).update(since=begun, numbers_from=begun, look_at=begun)
    with connection.cursor() as cursor:
        for minutes in range(0, 120, 10):
            sample = {
                make_series("failures", {}, environment="production"): Sample("gauge", "", minutes / 40)
            }
            write_samples(cursor, sample, now=begun + timedelta(minutes=minutes + 5))
    look_at_due()
    return ReleasePlan.objects.get(pk=plan.pk)


def test_a_flag_is_given_to_everybody_in_steps_in_three_clicks(visit, check_accessible, cart):
    page = visit("admin", f"{FLAG}/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    page.get_by_label("Rollout percentage").fill("100")
    expect(page.locator("#changes")).to_contain_text("1 unsaved change")
    clicks.on(page.get_by_label("In steps"))
    page.get_by_label("Steps, in %").fill("5, 25, 50, 100")
    page.get_by_label("Steps, in %").blur()
    steps = page.get_by_role("list", name="Steps")
    expect(steps.get_by_role("listitem")).to_have_count(4)
    expect(steps.get_by_role("listitem").first).to_have_text(re.compile(r"5 %\s+now\s+\d{3} off → on"))
    check_accessible(page)
    clicks.on(page.get_by_role("button", name="Start 5 → 25 → 50 → 100 %"))
    expect(page.get_by_role("heading", name="Next: 25 %")).to_be_visible()
    expect(page.get_by_text("Before 25 %")).to_be_visible()
    assert (share(), clicks.count) == ("5", 3)


def test_a_plan_that_its_safeguard_has_paused_is_accessible_and_stepped_back_in_two_clicks(visit, cart):
    assert paused_at_half().state == "paused"
    page = visit("admin", "/account/")
    window = Window(page)
    for address in ("/", "/release-plans/", f"{FLAG}/"):
        window.check(address)
        expect(page.get_by_text("Failed payments above 1").first).to_be_visible()

    clicks = Clicks(page)
    expect(page.get_by_text("Failed payments above 1").first).to_be_visible()
    clicks.on(page.get_by_role("link", name="Step back to 5 %…"))
    expect(page.get_by_text("of 10,000 generated users change")).to_be_visible()
    clicks.on(page.get_by_role("button", name="Step back to 5 %"))
    expect(page.get_by_text("Paused at step 1 of 3")).to_be_visible()
    assert (share(), clicks.count) == ("5", 2)
