"""Browser tests of the first account and of logging in."""

import re

from playwright.sync_api import expect

from groups.login.links import create_setup_link

PASSWORD = "a long enough passphrase"


def test_the_first_account_is_made_by_the_link_of_the_start(visit, transactional_db):
    page = visit(None, create_setup_link())
    page.get_by_label("User name").fill("ada")
    for box in page.get_by_label(re.compile("[Pp]assword")).all():
        box.fill(PASSWORD)
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_label("Password")).to_have_attribute("type", "text")
    page.get_by_role("button", name="Create account and log in").click()

    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    expect(page.get_by_role("heading", name="Connect your application")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Flags").click()
    page.get_by_role("navigation", name="Flags").get_by_role("link", name="Playground").click()
    expect(page.get_by_text("These projects have no active flags.")).to_be_visible()


def test_one_logs_in_and_lands_where_one_wanted_to_go(visit, scenery, people):
    people["viewer"].set_password(PASSWORD)
    people["viewer"].save()
    page = visit(None, "/activity/?kind=flags")
    page.get_by_label("User name").fill("viewer")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_focused()

    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    assert page.url.endswith("/activity/?kind=flags")
