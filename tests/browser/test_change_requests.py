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
from releases.requests.propose import send_changes
from tests.browser.journeys import Clicks
from tests.browser.looks import Window
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


def test_it_is_scheduled_and_what_user_42_gets_then_is_seen_in_three_clicks(visit, cart):
    page = visit("admin", strategy_page())
    clicks = Clicks(page)
    raise_to(page, "100")
    clicks.on(page.get_by_label("At a time"))
    friday = timezone.now() + timedelta(days=(4 - timezone.now().weekday()) % 7 or 7)
    page.locator("#when-at").fill(f"{friday:%Y-%m-%d}T09:00")
    clicks.on(page.get_by_role("button", name=re.compile("Schedule for Fri.*09:00")))
    expect(page.get_by_label("State").locator("[aria-current]")).to_contain_text("Scheduled")
    page.get_by_label("What will a user get then?").fill("42")
    clicks.on(page.get_by_role("button", name="Look"))
    expect(page.get_by_text("Flags as they will be on")).to_be_visible()
    row = page.locator("tr", has=page.get_by_role("link", name="zz-cart", exact=True))
    expect(row).to_contain_text("On")
    assert clicks.count == 3
    assert Strategy.objects.get(flag=cart, environment="production").parameters["rollout"] == "0"


def test_its_page_the_inbox_and_the_question_are_accessible_in_both_themes(visit, cart):
    strategy = Strategy.objects.get(flag=cart, environment="production")
    change = {"id": str(strategy.pk), "parameters": strategy.parameters | {"rollout": "50"}}
    author = Caller(user=User.objects.create(username="author", root_role_id=1))
    guard()
    proposed = [ProposedChange("zz-cart", "updateStrategy", change)]
    request = send_changes("checkout", "production", proposed, title="Half of them", caller=author)
    Strategy.objects.filter(pk=strategy.pk).update(disabled=True)  # a conflict
    address = f"/projects/checkout/change-requests/{request.pk}/"
    window = Window(visit("admin", "/account/"))
    window.check("/", address, f"{FLAG}/", f"{FLAG}/switch?environment=production&enabled=off")
