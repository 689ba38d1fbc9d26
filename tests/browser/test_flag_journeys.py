"""Browser tests of a flag's life: create it, find out why it is off, turn it on, archive and revive it."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow, stop_clock
from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")
EDITOR = "**/strategies/edit?*"
WHY = "/playground/flag/dark-theme/?environment=production&context.userId=42&context.plan=pro"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_explain_edit_and_see_it_on(visit, script):
    page = visit("admin", WHY, script=script)
    expect(page.get_by_text("userId 42 is in bucket 53 and the rollout stops at 50 %").first).to_be_visible()

    page.get_by_role("link", name="Edit strategy 1 of dark-theme").click()
    page.wait_for_url(EDITOR)
    expect(page.locator("#sentence")).to_contain_text(
        "On for 50 % of users, by userId, where plan is one of pro, enterprise."
    )
    page.get_by_label("Rollout percentage").fill("60")
    if script:
        expect(page.locator("#sentence")).to_contain_text("On for 60 % of users, by userId")
    page.get_by_role("button", name="Save to production…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save to production").click()

    expect(page.get_by_text("Changed a strategy of dark-theme in production.")).to_be_visible()
    expect(page.locator(".verdict .pill").first).to_have_text("On")


def test_a_kill_switch_is_on_for_a_twentieth_in_production_in_four_clicks(visit):
    page = visit("admin", "/projects/checkout/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="New flag"))
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("tip-jar")
    clicks.on(page.get_by_label("Kill switch: Turns a feature off quickly when it causes trouble."))
    clicks.choose(page.get_by_label("Turn on in"), "production")
    page.get_by_label("Percent of users").fill("5")
    clicks.on(page.get_by_role("button", name="Create flag"))

    expect(page.get_by_text("Created flag tip-jar, on for 5 % of users in production.")).to_be_visible()
    expect(page.get_by_role("region", name="production")).to_contain_text("On for 5 % of users")
    assert clicks.count == 4


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_flag_is_created_switched_on_archived_and_revived(visit, script):
    page = visit("admin", "/projects/checkout/", script=script)
    page.get_by_role("link", name="New flag").click()
    page.get_by_label("Name").fill("tip-jar")
    page.get_by_role("button", name="Create flag").click()
    expect(page.get_by_text("Created flag tip-jar, switched off in every environment.")).to_be_visible()

    place = page.get_by_role("region", name="production")
    place.get_by_role("switch", name="tip-jar in production").click()
    asked = page.get_by_role("dialog") if script else page.locator("main")
    expect(asked.get_by_role("heading").first).to_contain_text("Turn on tip-jar in production")
    expect(asked).to_contain_text("On for everyone.")
    page.get_by_role("button", name="Turn on tip-jar in production").click()
    expect(place.get_by_role("switch", name="tip-jar in production")).to_have_attribute(
        "aria-checked", "true"
    )
    expect(place).to_contain_text("On for everyone.")

    page.locator("summary", has_text="More").click()
    page.get_by_role("link", name="Archive…").click()
    expect(page.locator("main")).to_contain_text("No application has evaluated it.")
    page.get_by_role("button", name="Archive flag tip-jar").click()
    expect(page.get_by_text("Archived flag tip-jar.")).to_be_visible()
    page.get_by_role("button", name="Revive flag").click()
    expect(page.get_by_text("Revived flag tip-jar, switched off in every environment.")).to_be_visible()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_condition_is_added_with_the_input_of_its_operator(visit, script):
    page = visit("admin", "/projects/checkout/features/checkout-redesign/", script=script)
    page.get_by_role("link", name="Edit strategy 1 in production").click()
    page.wait_for_url(EDITOR)
    page.get_by_role("button", name="Add condition").click()
    page.get_by_label("Context field of condition 1").fill("country")
    page.get_by_label("Operator of condition 1").select_option("NOT_IN")
    if not script:
        page.get_by_role("button", name="Update inputs").click()
    page.get_by_label("DE", exact=True).check()
    if script:
        expect(page.locator("#sentence")).to_contain_text("where country is none of DE")
    page.get_by_role("button", name="Save to production…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save to production").click()

    expect(page.get_by_text("On for 10 % of users, by userId, where country is none of DE.")).to_be_visible()


def test_a_slow_answer_still_brings_the_inputs_of_an_operator(visit):
    page = visit("admin", "/projects/checkout/features/checkout-redesign/")
    page.get_by_role("link", name="Edit strategy 1 in production").click()
    page.wait_for_url(EDITOR)
    page.get_by_role("button", name="Add condition").click()
    field = page.get_by_label("Context field of condition 1")
    expect(field).to_be_visible()
    stop_clock(page)
    field.fill("country")

    def answer_late(route):
        page.clock.run_for(1000)  # the form wants to show what was typed meanwhile
        route.continue_()

    page.route(EDITOR, answer_late)
    page.get_by_label("Operator of condition 1").select_option("NOT_IN")

    expect(page.get_by_label("DE", exact=True)).to_be_visible()


@pytest.mark.parametrize("flag", ["apple-pay", "search-v2", "winter-sale", "image-cdn-switch"])
def test_the_form_of_each_strategy_is_accessible(visit, check_accessible, flag):
    page = visit("admin", f"/projects/checkout/features/{flag}/")
    page.get_by_role("link", name="Edit strategy 1 in production").click()
    page.wait_for_url(EDITOR)
    check_accessible(page)
    page.emulate_media(color_scheme="dark")
    make_narrow(page)
    check_accessible(page)
    fits(page)


def test_the_switch_in_the_list_replaces_its_row_alone(visit):
    page = visit("admin", "/projects/checkout/")
    page.evaluate("window.sameDocument = true")

    toggle = page.get_by_role("switch", name="apple-pay in development")
    was = toggle.get_attribute("aria-checked")
    now = "false" if was == "true" else "true"
    toggle.click()

    expect(toggle).to_have_attribute("aria-checked", now)
    expect(toggle).to_be_focused()
    assert page.evaluate("window.sameDocument")
    page.get_by_role("button", name="Undo").click()
    expect(toggle).to_have_attribute("aria-checked", was)


def test_the_bar_for_selected_flags_is_there_while_some_are(visit):
    page = visit("admin", "/projects/checkout/")
    bar = page.get_by_role("form", name="Selected flags")
    expect(bar).to_be_hidden()
    page.get_by_label("Select gift-cards").check()
    expect(bar).to_contain_text("1 selected")
    page.get_by_role("button", name="Clear selection").click()
    expect(bar).to_be_hidden()
    page.get_by_label("Select all on this page").check()
    expect(bar).to_contain_text(f"{page.locator('tbody tr').count()} selected")
