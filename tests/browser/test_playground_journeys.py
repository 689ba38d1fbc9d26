"""The journeys of the playground with their clicks, and results that follow the form."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.journeys import Clicks
from tests.browser.pages import ADA, row

pytestmark = pytest.mark.usefixtures("scenery")


def test_production_and_development_for_three_users_in_at_most_three_clicks(visit):
    page = visit("viewer", "/projects/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Flags").get_by_role("link", name="Playground"))
    clicks.on(page.get_by_label("development"))
    page.get_by_label("userId").fill("42,7,1001")

    heads = page.locator(".matrix thead tr:last-child th")
    expect(heads).to_contain_text(["Flag", *["userId 42", "userId 7", "userId 1001"] * 2])
    groups = page.locator(".matrix thead tr:first-child th")
    expect(groups).to_have_text(["development", "production"])
    clicks.on(page.locator(".matrix tbody td").first)
    expect(page.locator(".matrix tbody tr").first.locator(".why").first).to_be_visible()
    assert clicks.count <= 3


def test_results_follow_the_form_which_stays_even_with_a_problem(visit):
    page = visit("viewer", f"/playground/?{ADA}&result=off")
    user = page.get_by_label("userId")
    row(page, "dark-theme").locator("summary").click()
    user.press("End")
    user.press_sequentially("0")

    page.wait_for_url(re.compile(r"context\.userId=420.*result=off"))
    expect(page.locator("table.results")).to_contain_text("userId 420 is in bucket")
    expect(user).to_be_focused()
    expect(user).to_have_value("420")

    page.goto(f"/playground/?{ADA}")
    user.fill(",".join(map(str, range(13))))

    expect(page.locator("#results")).to_contain_text("There are 13 combinations; the page shows at most 12")
    expect(user).to_be_focused()
    user.fill("42")
    expect(page.locator("table.results tbody tr")).to_have_count(13)


def test_a_wide_matrix_says_how_much_is_out_of_sight(visit):
    users = ",".join(map(str, range(6)))
    page = visit(
        "viewer",
        f"/playground/?environment=production&environment=development&context.userId={users}",
        width=1024,
    )
    further = page.get_by_role("button", name=re.compile(r"\d more columns"))
    before = further.inner_text()
    further.click()

    expect(further).not_to_have_text(before)
    pinned = page.locator(".matrix tbody th").first
    assert pinned.bounding_box()["x"] == page.locator(".sideways").bounding_box()["x"] + 1


def test_a_saved_context_by_its_name_in_one_choice(visit):
    page = visit("viewer", "/playground/")
    clicks = Clicks(page)
    clicks.on(page.get_by_label("Saved context", exact=True))
    page.get_by_label("Saved context", exact=True).select_option("Norwegian pro user")

    expect(page.get_by_label("userId")).to_have_value("42")
    expect(page.get_by_label("plan")).to_have_value("pro")
    page.wait_for_url(re.compile(r"context\.userId=42"))
    expect(row(page, "dark-theme")).to_contain_text("userId 42 is in bucket 53")
    page.get_by_label("userId").fill("7")
    page.wait_for_url(re.compile(r"context\.userId=7&"))
    expect(page.get_by_label("userId")).to_have_value("7")
    assert clicks.count <= 1
