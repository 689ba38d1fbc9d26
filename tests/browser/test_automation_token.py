"""The journey "a CI token for production only": from the start page to a token that works there alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")


def test_from_the_search_it_takes_four_and_other_kinds_hide_what_only_automation_needs(
    visit, check_accessible
):
    page = visit("admin", "/")
    clicks = Clicks(page)

    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search or jump to")
    box.fill("automation token")
    expect(page.get_by_role("option", name="New automation token")).to_have_attribute("aria-selected", "true")
    clicks.enter(box)
    may = page.get_by_role("group", name="It may")
    expect(may.get_by_label("Turn flags on and off")).to_be_checked()
    expect(page.get_by_label("All projects")).to_be_hidden()
    make_narrow(page)
    check_accessible(page)
    fits(page)
    page.get_by_label("Backend").check()
    expect(may).to_be_hidden()
    expect(page.get_by_label("All projects")).to_be_visible()
    page.get_by_label("Automation").check()
    page.get_by_label("Name", exact=True).fill("ci-checkout")
    clicks.on(page.get_by_label("Checkout (checkout)"))
    clicks.choose(page.get_by_label("Environment", exact=True), "production")
    clicks.on(page.get_by_role("button", name="Create token"))
    expect(page.get_by_text("This is the only time the token is shown.")).to_be_visible()

    assert clicks.count == 4
