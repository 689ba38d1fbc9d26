"""Browser tests of the playground: evaluating, explaining, filtering, comparing and exporting results."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import stop_clock
from tests.browser.journeys import Clicks
from tests.browser.pages import ADA, row

pytestmark = pytest.mark.usefixtures("scenery")


def test_why_a_flag_is_off_for_user_42_in_at_most_three_clicks(visit):
    page = visit("viewer", "/projects/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("navigation", name="Flags").get_by_role("link", name="Playground"))
    page.get_by_label("userId").fill("42")
    off = row(page, "checkout-redesign")
    expect(off).to_contain_text("userId 42 is in bucket 92 and the rollout stops at 10 %")
    assert clicks.count == 1  # the reason stands in the row
    clicks.on(off.locator("summary"))
    expect(off.locator("svg text.here")).to_have_text("bucket 92")
    assert clicks.count <= 3

    page.get_by_label("plan").select_option("pro")
    page.keyboard.press("Control+Enter")
    off = row(page, "dark-theme")
    expect(off).to_contain_text("userId 42 is in bucket 53 and the rollout stops at 50 %")
    off.locator("summary").click()
    expect(off.locator("svg text.here")).to_have_text("bucket 53")
    expect(off).to_contain_text("It turns on when the rollout reaches 53 %")

    page.get_by_role("link", name="dark-theme").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("dark-theme")
    expect(page.get_by_text("bucket 53", exact=True)).to_be_visible()


def test_a_live_evaluation_does_not_overtake_the_button(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    held = []
    stop_clock(page)
    page.route("**/playground/?*", lambda route: held.append(route))
    page.get_by_role("button", name="Add field").click()
    page.get_by_label("Name of the field").fill("beta")
    page.get_by_label("Value of the field").fill("yes")
    with page.expect_request("**/playground/?*"):
        page.get_by_role("button", name="Evaluate").click()
    page.clock.run_for(500)  # longer than the delay of the live evaluation
    page.unroute("**/playground/?*")  # lets them go

    expect(page.get_by_label("beta")).to_have_value("yes")


def test_what_is_wrong_stands_beside_its_field_and_a_refusal_leaves_the_form_there(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    page.get_by_role("button", name="JSON", exact=True).click()
    page.get_by_label("Context as JSON").fill("{oops")
    page.get_by_role("button", name="Evaluate").click()

    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("Invalid JSON (line 1, column")
    expect(problem).to_be_focused()

    page.get_by_label("Context as JSON").fill(json.dumps({"userId": "x" * 1_000_000}))
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_role("status")).to_contain_text("larger than the 1 MB")
    expect(page.get_by_label("Context as JSON")).to_have_value(re.compile("xxx"))


def test_enter_in_any_field_evaluates_or_compares_what_was_filled_in(visit):
    page = visit("viewer", "/playground/")
    page.get_by_label("appVersion").fill("4.5.1")
    page.get_by_label("userId").fill("7")
    page.keyboard.press("Enter")

    page.wait_for_url("**/playground/?environment=production&context.userId=7&context.appVersion=4.5.1")
    expect(page.get_by_label("userId")).to_have_value("7")

    page.goto("/playground/compare/")
    page.get_by_role("group", name="Side 2").get_by_label("userId").fill("7")
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile(r"b\.context\.userId=7$"))


def test_the_link_keeps_filter_search_and_differences_and_the_command_is_copied(visit, live_server):
    page = visit("viewer", f"/playground/?{ADA}&result=on&q=search")
    stop_clock(page)  # "Copied" stands there for a moment
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    page.goto(copied)
    expect(page.locator("table.results tbody tr")).to_have_count(1)

    page.goto("/playground/compare/?b.context.userId=42")
    page.get_by_role("link", name="All 13").click()
    expect(page.locator(".matrix tbody tr")).to_have_count(13)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "show=all" in page.evaluate("navigator.clipboard.readText()")

    page.goto(f"/playground/?{ADA}&result=on")
    for label, start in (("Copy link", f"{live_server.url}/playground/?{ADA}"), ("Copy curl", "curl")):
        if label == "Copy curl":
            page.get_by_text("Export", exact=True).click()
        page.get_by_role("button", name=label).first.click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").startswith(start)
        page.clock.run_for(1500)
        expect(page.get_by_role("button", name=label).first).to_be_visible()


def test_the_keys_and_the_skip_link(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()

    page.keyboard.press("/")
    expect(page.get_by_label("Find a flag")).to_be_focused()
    page.keyboard.type("gift")
    page.keyboard.press("Enter")
    expect(page.locator("table.results tbody tr")).to_have_count(1)

    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
