"""Ctrl+K: finding anything from any page, by keyboard, without JavaScript, and by people who may read little."""

import re

import pytest
from playwright.sync_api import expect

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Segment
from tests.browser.conftest import fits, make_narrow, person
from tests.support.flags import make_flag

pytestmark = pytest.mark.usefixtures("scenery")
LONG = "segment with " + "a-very-long-name" * 6


def palette(page):
    return page.get_by_role("dialog", name="Search or jump to")


def query(page):
    return page.get_by_role("combobox", name="Search or jump to")


def current(page):
    return palette(page).get_by_role("option", selected=True)


def test_a_flag_is_found_from_any_page_with_three_letters(visit):
    """The journey: Ctrl+K, three letters, Enter. No click, five keys, without waiting in between."""
    page = visit("admin", "/")
    for address in (
        "/",
        "/activity/",
        "/access/roles/",
        "/playground/",
        "/projects/checkout/",
        "/admin/projects/flag/",
        "/api/docs/",
    ):
        page.goto(address)
        page.keyboard.press("Control+k")
        page.keyboard.type("dar")
        page.keyboard.press("Enter")

        page.wait_for_url("**/features/dark-theme/")
        expect(page.get_by_role("heading", level=1)).to_have_text("dark-theme")


def test_the_keys_of_a_combobox(visit):
    page = visit("admin", "/activity/")
    page.keyboard.press("Control+k")
    expect(query(page)).to_be_focused()
    page.keyboard.type("che")
    expect(current(page)).to_have_text(re.compile("checkout-redesign"))
    options = palette(page).get_by_role("option")
    last = options.count() - 1

    page.keyboard.press("ArrowUp")
    expect(options.nth(last)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    expect(options.nth(last)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(query(page)).to_have_attribute("aria-activedescendant", options.nth(1).get_attribute("id"))
    expect(current(page)).to_have_count(1)
    expect(query(page)).to_be_focused()


def test_escape_returns_to_where_one_was(visit):
    page = visit("admin", "/activity/")
    search = page.get_by_label("Flag, name or comment")
    search.focus()

    page.keyboard.press("Control+k")
    page.keyboard.type("check")
    page.keyboard.press("Escape")

    expect(palette(page)).to_be_hidden()
    expect(search).to_be_focused()
    expect(search).to_have_value("")


def test_a_click_on_the_header_opens_it_and_ctrl_enter_opens_a_tab(visit):
    page = visit("admin", "/activity/")
    page.get_by_role("link", name="Search or jump to").click()
    expect(palette(page)).to_be_visible()
    page.keyboard.type("audit")
    expect(current(page)).to_have_text(re.compile("Activity"))

    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")

    opened.value.wait_for_url("**/activity/")
    expect(palette(page)).to_be_visible()


def test_an_answer_that_was_overtaken_is_not_shown(visit):
    page = visit("admin", "/activity/")
    page.keyboard.press("Control+k")
    held = []
    page.route("**/search/?q=check", lambda route: held.append(route))
    page.keyboard.type("check")
    page.wait_for_function(
        "() => document.querySelector('#palette input').classList.contains('htmx-request')"
    )
    query(page).fill("dark-theme")

    expect(current(page)).to_have_text(re.compile("dark-theme"))
    for route in held:
        route.abort()
    expect(current(page)).to_have_text(re.compile("dark-theme"))


def test_the_theme_is_switched_and_the_page_stays(visit):
    page = visit("admin", "/activity/?kind=flags")
    page.keyboard.press("Control+k")
    page.keyboard.type("switch dark")
    expect(current(page)).to_have_text(re.compile("Switch to dark theme"))
    page.keyboard.press("Enter")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.url.endswith("/activity/?kind=flags")


def test_a_viewer_of_one_project_finds_only_what_is_theirs(visit):
    Grant.objects.create(role_id=BuiltIn.READER, project_id="legacy-portal", user=person("guest"))
    make_flag("portal-check", "legacy-portal")
    page = visit("guest", "/activity/")

    page.keyboard.press("Control+k")
    page.keyboard.type("check")

    expect(page.get_by_role("group", name="Flags").get_by_role("option")).to_have_count(1)
    expect(current(page)).to_have_text(re.compile("portal-check"))
    expect(page.get_by_role("group", name="Projects")).to_have_count(0)


def test_odd_names_are_shown_as_they_are(visit):
    page = visit("admin", "/")
    for name in ("<script>alert(1)</script>", "100% of 'em", 'said "yes"', LONG):
        Segment.objects.create(name=name)
        page.goto("/")
        page.keyboard.press("Control+k")
        query(page).fill(name)
        expect(current(page).locator("span").first).to_have_text(name)

        make_narrow(page)
        assert palette(page).evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")
        page.keyboard.press("Enter")
        page.wait_for_url("**/segments/*/")


def test_nothing_found_is_said(visit):
    page = visit("admin", "/")
    page.keyboard.press("Control+k")
    page.keyboard.type("no such thing anywhere")

    expect(palette(page).get_by_text("No results for")).to_be_visible()
    page.keyboard.press("Enter")
    expect(palette(page)).to_be_visible()


def test_without_javascript_it_is_a_page(visit):
    page = visit("admin", "/activity/", script=False)
    page.get_by_role("link", name="Search or jump to").click()
    page.get_by_role("searchbox", name="Search or jump to").fill("redesign check")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name="checkout-redesign").first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("checkout-redesign")


def test_dialog_and_page_are_accessible(visit, check_accessible):
    page = visit("admin", "/search/?q=check")
    check_accessible(page)

    page.keyboard.press("Control+k")
    check_accessible(page)
    query(page).fill("check")
    expect(current(page)).to_be_visible()
    check_accessible(page)
    query(page).fill("no such thing")
    expect(palette(page).get_by_text("No results for")).to_be_visible()
    check_accessible(page)

    make_narrow(page)
    fits(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    query(page).fill("")
    check_accessible(page)
    query(page).fill("check")
    expect(current(page)).to_be_visible()
    check_accessible(page)
