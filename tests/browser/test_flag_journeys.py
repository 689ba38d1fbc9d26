"""Browser tests of new flags, conditions that follow their operator, and switches in the list."""

import re

import pytest
from playwright.sync_api import expect

from projects.models import Flag
from tests.browser.conftest import stop_clock
from tests.browser.journeys import Clicks, add_condition

pytestmark = pytest.mark.usefixtures("scenery")
EDITOR = "**/strategies/edit?*"


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


def test_a_slow_answer_still_brings_the_inputs_of_an_operator_which_are_saved(visit):
    page = visit("admin", "/projects/checkout/features/checkout-redesign/")
    page.get_by_role("link", name="Roll out strategy 1 in production").click()
    page.wait_for_url(EDITOR)
    add_condition(page, "city")
    field = page.get_by_label("Context field of condition 1")
    expect(field).to_be_visible()
    stop_clock(page)
    field.fill("country")

    def answer_late(route):
        page.clock.run_for(1000)  # the form wants to show what was typed meanwhile
        route.continue_()

    page.route(EDITOR, answer_late)
    page.get_by_label("Operator of condition 1").select_option("NOT_IN")

    page.get_by_label("DE", exact=True).check()
    page.clock.run_for(1000)
    expect(page.locator("#sentence")).to_contain_text("where country is none of DE")
    page.unroute_all(behavior="ignoreErrors")  # of a request that is still held back
    page.clock.resume()
    page.get_by_role("button", name="Save now").click()

    expect(page.get_by_text("On for 10 % of users, by userId, where country is none of DE.")).to_be_visible()


def test_the_switch_in_the_list_replaces_its_row_alone_and_selected_flags_have_a_bar(visit):
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

    bar = page.get_by_role("form", name="Selected flags")
    expect(bar).to_be_hidden()
    page.get_by_label("Select gift-cards").check()
    expect(bar).to_contain_text("1 selected")
    page.get_by_role("button", name="Clear selection").click()
    expect(bar).to_be_hidden()
    page.get_by_label("Select all on this page").check()
    expect(bar).to_contain_text(f"{page.locator('tbody tr').count()} selected")


def test_production_is_flipped_in_the_row_in_two_clicks(visit):
    page = visit("admin", "/flags/")
    page.evaluate("window.sameDocument = true")
    toggle = page.get_by_role("switch", name="portal-banner in production")
    clicks = Clicks(page)
    clicks.on(toggle)
    asked = page.get_by_role("form", name="Turn off portal-banner in production?")
    expect(asked.get_by_role("heading")).to_be_focused()
    expect(asked).to_contain_text("10,000 of 10,000 generated users change")
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(toggle).to_be_focused()
    clicks.count = 0

    clicks.on(toggle)
    clicks.on(asked.get_by_role("button", name="Turn off portal-banner in production"))
    expect(toggle).to_have_attribute("aria-checked", "false")
    expect(asked).to_have_count(0)
    expect(toggle).to_be_focused()
    expect(page.get_by_text("Turned off portal-banner in production.")).to_be_visible()
    assert page.evaluate("window.sameDocument")
    assert clicks.count == 2


def test_a_share_in_production_is_changed_in_the_row_in_two_clicks_and_one_field(visit, check_accessible):
    page = visit("admin", "/flags/")
    page.evaluate("window.sameDocument = true")
    share = page.get_by_role("button", name="change the share of checkout-redesign in production")
    clicks = Clicks(page)
    clicks.on(share)
    asked = page.get_by_role("form", name="Change the share of checkout-redesign in production")
    number = asked.get_by_label("On for")
    expect(number).to_be_focused()
    page.keyboard.type("60")
    expect(asked).to_contain_text("of 10,000 generated users change")
    check_accessible(page)
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(share).to_be_focused()
    clicks.count = 0

    clicks.on(share)
    number.fill("101")
    assert not number.evaluate("field => field.checkValidity()")
    number.fill("60")
    clicks.on(asked.get_by_role("button", name="Change in production"))
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()
    expect(share).to_have_accessible_name(re.compile("^6[01]"))
    expect(share).to_be_focused()
    expect(asked).to_have_count(0)
    assert page.evaluate("window.sameDocument")
    assert clicks.count == 2


def test_flags_of_several_projects_that_can_go_are_archived_in_four_clicks(visit):
    Flag.objects.filter(name__in=("portal-banner", "dark-theme")).update(stale=True)
    page = visit("admin", "/flags/")
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Can go"))
    clicks.on(page.get_by_label("Select all on this page"))
    assert page.locator("tbody [name=name]:checked").count() == 2
    clicks.on(page.get_by_role("button", name="Archive selected"))
    clicks.on(page.get_by_role("main").get_by_role("button", name="Archive"))
    expect(page.locator("#messages")).to_contain_text("Archived 2 flags")
    assert clicks.count == 4
