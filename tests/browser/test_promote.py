"""Promoting flags from development to production in a browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from projects.models import Strategy
from tests.browser.journeys import Clicks
from tests.support.flags import make_flag

pytestmark = pytest.mark.usefixtures("scenery")
NAMES = ("first-flag", "second-flag", "third-flag")


@pytest.fixture
def flags(scenery: Any) -> None:
    for name in NAMES:
        make_flag(name, "checkout", enabled=True, strategies=[{"name": "default"}])


def test_environments_are_swapped_and_three_flags_promoted_in_six_clicks(
    flags: Any, visit: Any, check_accessible: Any
) -> None:
    """Environments, three ticks, Promote, confirm: the page begins with what differs."""
    page = visit("admin", "/projects/checkout/environments/")
    page.get_by_role("link", name="Swap").click()
    expect(page.get_by_label("To", exact=True)).to_have_value("development")
    page.get_by_label("From", exact=True).select_option("development")
    expect(page.get_by_text("This project uses one environment")).to_be_visible()

    page.goto("/projects/checkout/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Project").get_by_role("link", name="Environments"))
    expect(page.get_by_role("link", name=re.compile("^Differs"))).to_have_attribute("aria-current", "true")
    check_accessible(page)
    for name in NAMES:
        clicks.on(page.get_by_label(f"Select {name}"))
    clicks.on(page.get_by_role("button", name="Promote to production…"))
    expect(page.get_by_role("heading", name="Promote 3 flags to production")).to_be_visible()
    assert not Strategy.objects.filter(flag__name__in=NAMES, environment="production").exists()
    check_accessible(page)
    clicks.on(page.get_by_role("button", name="Promote 3 flags"))
    expect(page.get_by_text("3 flags promoted.")).to_be_visible()
    assert clicks.count == 6
    assert Strategy.objects.filter(flag__name__in=NAMES, environment="production").count() == 3
