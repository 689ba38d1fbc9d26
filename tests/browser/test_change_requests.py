"""Change requests in few clicks: proposed from the strategy form, approved from the start page, scheduled and foreseen."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from groups.access import Caller
from groups.models import User
from projects.models import Flag, ProjectEnvironment, Strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.propose import send_changes
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks
from tests.support.playground import live_flag

FLAG = "/projects/checkout/features/zz-cart"


@pytest.fixture
def cart(scenery) -> Flag:
    """On for 0 % in production of the checkout."""
    parameters = {"rollout": "0", "stickiness": "userId", "groupId": "zz-cart"}
    return live_flag(
        "zz-cart", project="checkout", strategies=[{"name": "flexibleRollout", "parameters": parameters}]
    )


def guard() -> None:
    links = ProjectEnvironment.objects.filter(project="checkout", environment="production")
    links.update(required_approvals=1)


def strategy_page() -> str:
    key = Strategy.objects.get(flag__name="zz-cart", environment="production").pk
    return f"{FLAG}/strategies/edit?environmentId=production&strategyId={key}"


def raise_to(page: Page, percent: str) -> None:
    page.get_by_label("Rollout percentage").fill(percent)
    expect(page.locator("#changes")).to_contain_text("1 unsaved change")


def test_half_is_proposed_and_sent_in_three_clicks(visit, cart):
    guard()
    page = visit("admin", f"{FLAG}/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Edit").last)
    raise_to(page, "50")
    clicks.on(page.get_by_role("button", name="Send for review…", exact=True).last)
    clicks.on(page.get_by_role("dialog").get_by_role("button", name="Send for review"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Roll out zz-cart to 50 %")
    expect(page.get_by_label("State").locator("[aria-current]")).to_contain_text("In review")
    assert ChangeRequest.objects.get().state == "In review"
    assert clicks.count == 3


def test_it_is_approved_from_the_start_page_in_two_clicks_with_the_numbers_seen(visit, cart):
    guard()
    strategy = Strategy.objects.get(flag=cart, environment="production")
    change = {"id": str(strategy.pk), "parameters": strategy.parameters | {"rollout": "50"}}
    author = Caller(user=User.objects.create(username="author", root_role_id=1))
    proposed = [ProposedChange("zz-cart", "updateStrategy", change)]
    send_changes("checkout", "production", proposed, title="Half of them", caller=author)
    page = visit("admin", "/")
    clicks = Clicks(page)
    expect(page.get_by_text(re.compile(r"\d+(\.\d)? % of users"))).to_be_visible()
    clicks.on(page.get_by_role("link", name=re.compile("Review.*Half of them")))
    expect(page.get_by_text("of 10,000 generated users change")).to_be_visible()
    clicks.on(page.get_by_role("button", name="Approve", exact=True))
    expect(page.get_by_label("State").locator("[aria-current]")).to_contain_text("Approved")
    expect(page.get_by_label("Activity")).to_contain_text("approved it, having seen")
    assert clicks.count == 2


def test_it_is_scheduled_and_what_user_42_gets_then_is_seen_in_four_clicks(visit, cart):
    page = visit("admin", strategy_page())
    clicks = Clicks(page)
    raise_to(page, "100")
    clicks.on(page.get_by_role("button", name="Save to production…").last)
    clicks.on(page.get_by_role("dialog").get_by_label("At a time…"))
    friday = timezone.now() + timedelta(days=(4 - timezone.now().weekday()) % 7 or 7)
    page.locator("#when-at").fill(f"{friday:%Y-%m-%d}T09:00")
    clicks.on(page.get_by_role("dialog").get_by_role("button", name=re.compile("Schedule for Fri.*09:00")))
    expect(page.get_by_label("State").locator("[aria-current]")).to_contain_text("Scheduled")
    page.get_by_label("What will a user get then?").fill("42")
    clicks.on(page.get_by_role("button", name="Look"))
    expect(page.get_by_text("Flags as they will be on")).to_be_visible()
    row = page.locator("tr", has=page.get_by_role("link", name="zz-cart", exact=True))
    expect(row).to_contain_text("On")
    assert clicks.count == 4
    assert Strategy.objects.get(flag=cart, environment="production").parameters["rollout"] == "0"


def test_its_page_the_inbox_and_the_question_are_accessible_in_both_themes(visit, check_accessible, cart):
    strategy = Strategy.objects.get(flag=cart, environment="production")
    change = {"id": str(strategy.pk), "parameters": strategy.parameters | {"rollout": "50"}}
    author = Caller(user=User.objects.create(username="author", root_role_id=1))
    guard()
    proposed = [ProposedChange("zz-cart", "updateStrategy", change)]
    request = send_changes("checkout", "production", proposed, title="Half of them", caller=author)
    Strategy.objects.filter(pk=strategy.pk).update(disabled=True)  # a conflict
    page = visit("admin", "/")
    address = f"/projects/checkout/change-requests/{request.pk}/"
    for theme, look in (("light", lambda: None), ("dark", lambda: make_narrow(page))):
        page.emulate_media(color_scheme=theme)
        for url in ("/", address, f"{FLAG}/", f"{FLAG}/switch?environment=production&enabled=off"):
            page.goto(url)
            look()
            check_accessible(page)
            fits(page, page.viewport_size["width"])
