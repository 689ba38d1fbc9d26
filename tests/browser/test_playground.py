"""Browser tests of the playground: evaluating, explaining, filtering, comparing and exporting results."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import stop_clock
from tests.browser.pages import ADA, row

pytestmark = pytest.mark.usefixtures("scenery")

REQUESTS = 6
BYTES = 200_000


def test_an_off_flag_is_explained_by_its_bucket(visit):
    page = visit("viewer", "/playground/")
    page.get_by_label("userId").fill("42")
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


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_results_are_narrowed_down(visit, script):
    page = visit("viewer", f"/playground/?{ADA}", script=script)
    page.locator(".chip.unknown").click()

    expect(page.locator("table.results tbody tr")).to_have_count(1)
    expect(page.locator("table.results")).to_contain_text("only your SDK can evaluate it")
    expect(page).to_have_url(re.compile("context.userId=42.*result=unknown"))


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_field_of_ones_own_is_added(visit, script):
    page = visit("viewer", f"/playground/?{ADA}", script=script)
    if script:
        page.get_by_role("button", name="Add field").click()
    page.get_by_label("Name of the field").fill("beta")
    page.get_by_label("Value of the field").fill("yes")
    page.get_by_role("button", name="Evaluate").click()

    expect(page.get_by_label("beta")).to_have_value("yes")


def test_a_live_evaluation_does_not_overtake_the_button(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    held = []
    page.route("**/playground/?*", lambda route: held.append(route))
    page.get_by_role("button", name="Add field").click()
    page.get_by_label("Name of the field").fill("beta")
    page.get_by_label("Value of the field").fill("yes")
    with page.expect_request("**/playground/?*"):
        page.get_by_role("button", name="Evaluate").click()
    page.wait_for_timeout(500)  # longer than the delay of the live evaluation
    page.unroute("**/playground/?*")  # lets them go

    expect(page.get_by_label("beta")).to_have_value("yes")


def test_the_address_holds_only_what_was_filled_in(visit):
    page = visit("viewer", "/playground/")
    page.get_by_label("userId").fill("7")
    page.get_by_role("button", name="Evaluate").click()

    page.wait_for_url(re.compile("userId=7"))
    assert page.url.endswith("/playground/?environment=production&context.userId=7")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_fields_become_json_and_back(visit, script):
    page = visit("viewer", f"/playground/?{ADA}", script=script)
    page.get_by_role("button", name="JSON", exact=True).click()

    box = page.get_by_label("Context as JSON")
    expect(box).to_have_value(re.compile('"plan": "pro"'))
    box.fill('{"userId": "7", "properties": {"plan": "free"}}')
    page.get_by_role("button", name="Evaluate").click()
    expect(row(page, "dark-theme")).to_contain_text("plan is free, needs one of pro, enterprise")

    page.get_by_role("button", name="Fields").click()
    expect(page.get_by_label("userId")).to_have_value("7")


def test_what_is_wrong_stands_beside_its_field_and_has_the_focus(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    page.get_by_role("button", name="JSON", exact=True).click()
    page.get_by_label("Context as JSON").fill("{oops")
    page.get_by_role("button", name="Evaluate").click()

    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("Invalid JSON (line 1, column")
    expect(problem).to_be_focused()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_enter_in_any_field_evaluates(visit, script):
    page = visit("viewer", "/playground/", script=script)
    page.get_by_label("appVersion").fill("4.5.1")
    page.get_by_label("userId").fill("7")
    page.keyboard.press("Enter")

    page.wait_for_url("**/playground/?environment=production&context.userId=7&context.appVersion=4.5.1")
    expect(page.get_by_label("userId")).to_have_value("7")


def test_enter_in_any_field_compares(visit):
    page = visit("viewer", "/playground/compare/")
    page.get_by_role("group", name="Side 2").get_by_label("userId").fill("7")
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile(r"b\.context\.userId=7$"))


LONG_CONTEXT = json.dumps({"userId": "42", "properties": {"plan": "pro", "note": "x" * 64_000}})


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_context_of_64_kb_is_evaluated_and_filtered(visit, script):
    page = visit("viewer", f"/playground/?{ADA}&as=json", script=script)
    page.get_by_label("Context as JSON").fill(LONG_CONTEXT)
    page.get_by_role("button", name="Evaluate").click()

    page.wait_for_url(re.compile("kept=[0-9a-f]{64}"))
    expect(row(page, "dark-theme")).to_contain_text("userId 42 is in bucket 53")
    page.locator(".chip.unknown").click()
    expect(page.locator("table.results tbody tr")).to_have_count(1)
    expect(page.get_by_label("Context as JSON")).to_have_value(LONG_CONTEXT)


def test_a_refusal_leaves_the_form_there(visit):
    page = visit("viewer", f"/playground/?{ADA}&as=json")
    page.get_by_label("Context as JSON").fill(json.dumps({"userId": "x" * 1_000_000}))
    page.get_by_role("button", name="Evaluate").click()

    expect(page.get_by_role("status")).to_contain_text("larger than the 1 MB")
    expect(page.get_by_label("Context as JSON")).to_have_value(re.compile("xxx"))


def test_the_link_keeps_filter_search_and_differences(visit):
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


def test_the_link_and_the_command_are_copied(visit, live_server):
    page = visit("viewer", f"/playground/?{ADA}&result=on")
    stop_clock(page)  # "Copied" stands there for a moment
    for label, start in (("Copy link", f"{live_server.url}/playground/?{ADA}"), ("Copy curl", "curl")):
        if label == "Copy curl":
            page.get_by_text("Export", exact=True).click()
        page.get_by_role("button", name=label).first.click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").startswith(start)
        page.clock.run_for(1500)
        expect(page.get_by_role("button", name=label).first).to_be_visible()


def test_two_environments_are_compared_and_swapped(visit):
    page = visit("viewer", f"/playground/?{ADA}")
    page.get_by_role("link", name="Compare with…").click()
    page.get_by_role("group", name="Side 1").get_by_label("production").uncheck()
    page.get_by_role("group", name="Side 1").get_by_label("development").check()
    page.get_by_role("button", name="Compare").click()

    heads = page.locator(".matrix thead tr:first-child th")
    expect(heads).to_contain_text(["development", "production"])
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    page.locator(".matrix tbody summary").click()
    expect(page.get_by_text("Switched off in production")).to_be_visible()
    page.get_by_role("link", name="Swap").click()
    expect(heads).to_contain_text(["production", "development"])
    page.get_by_role("link", name="All 13").click()
    expect(page.locator(".matrix tbody tr")).to_have_count(13)


def test_the_keys(visit):
    page = visit("viewer", f"/playground/?{ADA}")
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


def test_the_skip_link_comes_first(visit):
    page = visit("viewer", "/playground/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_theme_stays(visit, script):
    page = visit("viewer", "/", script=script)
    choose_theme(page, "Dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/playground/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    choose_theme(page, "Light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    choose_theme(page, "System")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "light")
    page.goto("/playground/")
    expect(page.locator("html[data-theme]")).to_have_count(0)


def choose_theme(page, name):
    page.get_by_label("Theme").click()
    page.get_by_role("button", name=name, exact=True).click()


def test_a_cold_page_is_small(visit, watch):
    page = visit("viewer", f"/playground/?{ADA}")
    page.wait_for_load_state("networkidle")
    sent = page.evaluate(
        """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
                .reduce((sum, entry) => sum + entry.transferSize, 0)"""
    )

    assert len(watch.requests) <= REQUESTS, [request.url for request in watch.requests]
    assert 0 < sent <= BYTES
