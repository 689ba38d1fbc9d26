"""Browser tests from an empty installation, or the demo's login link, to an evaluated playground."""

import re

import pytest
from playwright.sync_api import expect

from flagadmin.demo.flags import VISITOR
from flagadmin.demo.load import load_demo
from groups.login.links import create_login_link, create_setup_link

PASSWORD = "a long enough passphrase"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_demos_link_opens_the_evaluated_playground(visit, transactional_db, script):
    address = "/playground/?environment=production&" + "&".join(
        f"context.{k}={v}" for k, v in VISITOR.items()
    )
    page = visit(None, create_login_link(load_demo(), address), script=script)

    expect(page.get_by_role("heading", level=1)).to_have_text("Playground")
    results = page.locator("table.results")
    for reason in (
        "userId 42 is in bucket 53 and the rollout stops at 50 %",
        "Not in segment beta-testers",
        "Depends on checkout-redesign, which is off here",
        "only your SDK can evaluate it",
        "Switched off in production",
    ):
        expect(results).to_contain_text(reason)
    expect(page.locator("tr", has_text="search-v2").locator(".pill.variant")).to_have_text("ranker-b")


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
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Playground").click()
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
    expect(page.get_by_role("heading", level=1)).to_have_text("Activity")
    assert page.url.endswith("/activity/?kind=flags")


def test_a_viewer_is_offered_nothing_and_refused_in_words(visit, scenery):
    page = visit("viewer", "/playground/")
    expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    expect(page.get_by_role("link", name="edit", exact=False)).to_have_count(0)

    page.goto("/admin/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Admin")
