"""Browser tests of "Who changes": while a form is filled in, in what is asked before saving, and without script."""

import re

import pytest
from playwright.sync_api import expect

from projects.models import Dependency, Strategy
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks, add_condition

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/checkout-redesign/"


def strategy():
    return Strategy.objects.get(flag__name="checkout-redesign", environment="production")


def test_a_rollout_to_half_of_german_users_is_raised_knowing_who_changes(visit, check_accessible):
    page = visit("admin", FLAG)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    who = page.get_by_role("complementary").get_by_role("region", name="Who changes")
    expect(who).to_contain_text("No change for 10,000 generated users")
    page.get_by_label("Rollout percentage").fill("50")
    expect(who).to_contain_text("off → on")
    add_condition(page, "country")
    clicks.on(page.get_by_label("DE", exact=True))
    expect(page.get_by_role("checkbox", name="Everyone else: as now")).to_be_checked()
    expect(who).to_contain_text("country DE")
    page.get_by_role("checkbox", name="Everyone else: as now").uncheck()
    expect(who).to_contain_text("on → off")
    check_accessible(page)
    make_narrow(page)
    fits(page)

    clicks.on(page.get_by_role("button", name=re.compile(r"Save now: [\d,]+ of 10,000 users change")))

    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()
    assert strategy().parameters["rollout"] == "50"
    assert strategy().constraints[0]["values"] == ["DE"]
    assert clicks.count == 3


def test_a_dependency_says_who_changes_before_it_is_added_or_removed(visit, check_accessible):
    page = visit("admin", "/projects/checkout/features/gift-cards/")
    page.get_by_role("region", name="Dependencies").locator("summary", has_text="Add").click()
    page.get_by_label("Depends on").fill("nowhere")

    expect(page.get_by_role("region", name="Who changes")).to_contain_text("flag nowhere not found")

    page.goto("/projects/checkout/features/gift-cards/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("button", name="Remove the dependency on checkout-redesign"))
    title = "Remove the dependency of gift-cards on checkout-redesign"
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("region", name="Who changes")).to_contain_text("off → on")
    check_accessible(page)
    make_narrow(page)
    fits(page)
    clicks.on(page.get_by_role("button", name=title))

    expect(page.get_by_text("gift-cards no longer depends on checkout-redesign.")).to_be_visible()
    assert clicks.count == 2
    assert not Dependency.objects.filter(flag__name="gift-cards").exists()
