"""The journey "give this person access": from the account, without looking for the project's page."""

import pytest
from playwright.sync_api import expect

from groups.models import Grant, Group
from tests.browser.journeys import Clicks
from tests.support.cast import make_user

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_an_account_is_granted_a_role_and_a_group_from_its_page(visit, script, check_accessible):
    grace = make_user("grace", name="Grace Hopper")
    Group.objects.create(name="Navy")
    page = visit("admin", f"/access/people/{grace.pk}/", script=script)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Grant access"))
    clicks.choose(page.get_by_label("Project", exact=True), "checkout")
    clicks.choose(page.get_by_label("Role in the project"), label="Member")
    clicks.choose(page.get_by_label("Group"), "Navy")
    clicks.on(page.get_by_role("button", name="Grant access"))

    assert clicks.count == 5
    expect(page.get_by_role("status")).to_contain_text("Member in checkout, membership of Navy.")
    if script:
        check_accessible(page)
    clicks.on(page.get_by_role("button", name="Revoke Member in checkout"))
    expect(page.get_by_role("status")).to_contain_text("Revoked Member from grace in checkout.")
    assert not Grant.objects.filter(user=grace).exists()
    assert page.url.endswith(f"/access/people/{grace.pk}/")
