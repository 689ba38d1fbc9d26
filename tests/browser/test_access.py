"""Browser tests of access: a new token is copied, and pages that the scenery does not have."""

import pytest
from playwright.sync_api import expect

from groups.models import Role
from tests.browser.conftest import stop_clock
from tests.browser.looks import Window
from tests.support.scenery import make_contractors

pytestmark = pytest.mark.usefixtures("scenery")


def test_a_new_token_is_copied(visit, check_accessible):
    page = visit("admin", "/access/tokens/new/")
    page.get_by_label("Name").fill("checkout-service")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("Choose the projects this token can access.")).to_be_visible()
    check_accessible(page)

    page.get_by_label("Backend: SDKs on servers read flags with it").check()
    page.get_by_label("Checkout (checkout)").check()
    page.get_by_label("Environment").select_option("production")
    page.get_by_role("button", name="Create token").click()

    expect(page.get_by_text("This is the only time the token is shown.")).to_be_visible()
    secret = page.locator("#secret").inner_text()
    check_accessible(page)
    stop_clock(page)  # "Copied" stands there for a moment
    page.get_by_role("button", name="Copy token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret


def test_a_group_with_people_who_lose_access_and_a_role_of_ones_own(visit, scenery, check_accessible):
    role = Role.objects.create(name="Deployer", type="custom")
    deletion = f"/access/groups/{make_contractors().pk}/delete/"
    Window(visit("admin", "/")).check(deletion, f"/access/roles/{role.pk}/edit/")
    check_accessible(visit("viewer", deletion))  # it is refused
