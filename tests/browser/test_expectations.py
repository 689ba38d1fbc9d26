"""A project that refuses changes that break an expectation: a switch that acts at once asks in its place, in production before it acts."""

import pytest
from playwright.sync_api import expect

from playground.models import SavedContext
from projects.models import FlagEnvironment, Project
from tests.browser.conftest import fits, make_narrow

pytestmark = pytest.mark.usefixtures("scenery")


def place(environment="development"):
    return FlagEnvironment.objects.get(flag__name="checkout-redesign", environment=environment)


def test_a_switch_that_acts_at_once_asks_in_its_place_and_one_that_asks_tells_before(visit, check_accessible):
    Project.objects.filter(pk="checkout").update(refuse_broken_expectations=True)
    flag = place().flag
    flag.strategies.all().delete()
    expected = []
    for environment in ("development", "production"):
        flag.strategies.create(environment_id=environment, name="default")
        expected.append({"flag": flag.name, "environment": environment, "enabled": True, "variant": None})
    enforced = {flag.name: flag.project_id}
    SavedContext.objects.create(
        name="Wholesale user", context={"userId": "1"}, expectations=expected, enforced_in=enforced
    )
    page = visit("admin", "/projects/checkout/features/checkout-redesign/")
    toggle = page.get_by_role("switch", name="checkout-redesign in development")
    toggle.click()

    expect(page.get_by_role("heading", name="Expectations would break")).to_be_visible()
    assert place().enabled
    check_accessible(page)
    make_narrow(page)
    fits(page)
    page.get_by_role("link", name="Cancel").click()
    expect(toggle).to_be_checked()

    toggle.click()
    page.get_by_role("button", name="Save anyway").click()
    expect(toggle).not_to_be_checked()
    assert not place().enabled

    page.get_by_role("switch", name="checkout-redesign in production").click()
    expect(page.get_by_role("region", name="Who changes")).to_contain_text("Project Checkout refuses that")
    assert place("production").enabled
