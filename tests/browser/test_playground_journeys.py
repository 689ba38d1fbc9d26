"""The journeys of the playground with their clicks, and results that follow the form."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from tests.browser.journeys import Clicks
from tests.browser.pages import ADA, row

pytestmark = pytest.mark.usefixtures("scenery")


def test_why_a_flag_is_off_for_user_42_in_at_most_three_clicks(visit):
    page = visit("viewer", "/projects/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Playground"))
    page.get_by_label("userId").fill("42")

    off = row(page, "checkout-redesign")
    expect(off).to_contain_text("userId 42 is in bucket 92 and the rollout stops at 10 %")
    assert clicks.count == 1  # the reason stands in the row
    clicks.on(off.locator("summary"))
    expect(off.locator("svg text.here")).to_have_text("bucket 92")
    assert clicks.count <= 3


def test_production_and_development_for_three_users_in_at_most_three_clicks(visit):
    page = visit("viewer", "/projects/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Playground"))
    clicks.on(page.get_by_label("development"))
    page.get_by_label("userId").fill("42,7,1001")

    heads = page.locator(".matrix thead tr:last-child th")
    expect(heads).to_contain_text(["Flag", *["userId 42", "userId 7", "userId 1001"] * 2])
    groups = page.locator(".matrix thead tr:first-child th")
    expect(groups).to_have_text(["development", "production"])
    clicks.on(page.locator(".matrix tbody td").first)
    expect(page.locator(".matrix tbody tr").first.locator(".why").first).to_be_visible()
    assert clicks.count <= 3


def test_results_follow_the_form_and_the_form_stays(visit):
    page = visit("viewer", f"/playground/?{ADA}&result=off")
    user = page.get_by_label("userId")
    row(page, "dark-theme").locator("summary").click()
    user.press("End")
    user.press_sequentially("0")

    page.wait_for_url(re.compile(r"context\.userId=420.*result=off"))
    expect(page.locator("table.results")).to_contain_text("userId 420 is in bucket")
    expect(user).to_be_focused()
    expect(user).to_have_value("420")


def test_a_problem_while_typing_leaves_the_form_and_its_focus(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    user = page.get_by_label("userId")
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


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_part_of_a_matrix_is_left_out(visit, script):
    page = visit("viewer", "/playground/?environment=production&context.userId=42,7", script=script)
    page.get_by_role("link", name="Leave out userId 7").click()

    page.wait_for_url("**/playground/?environment=production&context.userId=42")
    expect(page.locator("table.results tbody tr")).to_have_count(13)


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


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_what_user_42_got_yesterday_at_14_03_in_at_most_three_clicks(visit, script, monkeypatch):
    now, place = timezone.now(), ("checkout", "pay-later", "production")
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: now - timedelta(days=2))
        create_flag("checkout", NewFlag(name="pay-later"), caller=Caller.system())
        environments.enable_flag(*place, caller=Caller.system())
    environments.disable_flag(*place, caller=Caller.system())
    page = visit("viewer", "/projects/", script=script)
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Playground"))
    page.get_by_label("userId").fill("42")
    yesterday = (now - timedelta(days=1)).strftime("%Y-%m-%dT14:03:00")
    page.get_by_label("Flags as of").fill(yesterday)
    if not script:
        clicks.on(page.get_by_role("button", name="Evaluate").last)

    note = page.get_by_role("note")
    expect(note).to_contain_text("Flags as they were on")
    expect(note).to_contain_text("14:03:00")
    expect(row(page, "pay-later")).to_contain_text("On")
    page.wait_for_url(re.compile(r"at=20\d\d-\d\d-\d\dT14%3A03%3A00Z"))
    assert clicks.count == (1 if script else 2)
    clicks.on(note.get_by_role("link", name="Show now"))
    expect(row(page, "pay-later")).to_contain_text("Off")
    assert clicks.count <= 3
