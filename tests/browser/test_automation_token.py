"""The journey "a CI token for production only": from the start page to a token that works there alone."""

import pytest
from playwright.sync_api import expect

from groups.models import Grant
from projects.models import FlagEnvironment
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks
from tests.support.cast import client

pytestmark = pytest.mark.usefixtures("scenery")


def fill_in(page, clicks):
    page.get_by_label("Name", exact=True).fill("ci-checkout")
    clicks.on(page.get_by_label("Checkout (checkout)"))
    clicks.choose(page.get_by_label("Environment", exact=True), "production")
    clicks.on(page.get_by_role("button", name="Create token"))
    expect(page.get_by_text("This is the only time the token is shown.")).to_be_visible()


def status(secret, environment):
    path = f"/api/admin/projects/checkout/features/gift-cards/environments/{environment}/off"
    return client(secret).post(path).status_code


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_ci_token_for_production_only_takes_six_clicks(visit, script, check_accessible):
    page = visit("admin", "/", script=script)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Access"))
    clicks.on(page.get_by_role("link", name="API tokens"))
    clicks.on(page.get_by_role("link", name="New automation token"))
    expect(page.get_by_label("Automation")).to_be_checked()
    expect(page.get_by_label("All projects")).to_be_hidden()
    if script:
        check_accessible(page)
    fill_in(page, clicks)

    assert clicks.count <= 6
    expect(page.locator("main")).to_contain_text("in production of checkout. It changes nothing else.")
    expect(page.locator("#command")).to_contain_text("curl -H 'Authorization: user:")
    secret = page.locator("#secret").inner_text()
    assert status(secret, "production") == 200
    assert status(secret, "development") == 403
    assert not FlagEnvironment.objects.get(flag__name="gift-cards", environment="production").enabled
    assert Grant.objects.get(user__username="ci-checkout").project_id == "checkout"
    page.goto("/access/tokens/?kind=automation")
    row = page.get_by_role("row", name="ci-checkout")
    expect(row).to_contain_text("Automation")
    expect(row).to_contain_text("checkout · production")


def test_from_the_search_it_takes_four(visit):
    page = visit("admin", "/")
    clicks = Clicks(page)

    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search or jump to")
    box.fill("automation token")
    expect(page.get_by_role("option", name="New automation token")).to_have_attribute("aria-selected", "true")
    clicks.enter(box)
    fill_in(page, clicks)

    assert clicks.count == 4


def test_what_only_automation_needs_is_hidden_for_the_other_kinds(visit, check_accessible):
    page = visit("admin", "/access/tokens/new/")
    may = page.get_by_role("group", name="It may")

    expect(may).to_be_hidden()
    page.get_by_label("Automation").check()
    expect(may.get_by_label("Turn flags on and off")).to_be_checked()
    make_narrow(page)
    check_accessible(page)
    fits(page)
    page.get_by_label("Backend").check()
    expect(may).to_be_hidden()
