"""Ctrl+K: finding anything from any page, by keyboard, without JavaScript, and by people who may read little."""

import re

import pytest
from playwright.sync_api import expect

from projects.models import Segment
from tests.browser.conftest import fits, make_narrow
from tests.support.live_server import wait_until

pytestmark = pytest.mark.usefixtures("scenery")
LONG = "segment with " + "a-very-long-name" * 6


def palette(page):
    return page.get_by_role("dialog", name="Search or jump to")


def query(page):
    return page.get_by_role("combobox", name="Search or jump to")


def found(page):
    return palette(page).get_by_role("region", name="Search results")


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


@pytest.mark.parametrize("verb", ["why", "evaluate"])
def test_why_user_42_does_not_get_a_flag_is_asked_in_one_line(visit, verb):
    """The journey: Ctrl+K, one line, Enter."""
    page = visit("admin", "/")
    page.keyboard.press("Control+k")
    page.keyboard.type(f"{verb} checkout-redesign for 42")
    page.keyboard.press("Enter")
    page.wait_for_url("**/features/checkout-redesign/why/?as=42")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile(r"^Why is checkout-redesign (on|off) for userId 42\?$")
    )


def test_the_keys_of_a_combobox_and_escape_returns_to_where_one_was(visit):
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

    page.keyboard.press("Escape")
    search = page.get_by_label("Flag, name or comment")
    search.focus()

    page.keyboard.press("Control+k")
    page.keyboard.type("check")
    page.keyboard.press("Escape")

    expect(palette(page)).to_be_hidden()
    expect(search).to_be_focused()
    expect(search).to_have_value("")


def test_a_click_on_the_header_opens_it_ctrl_enter_opens_a_tab_and_the_theme_is_switched(visit):
    page = visit("admin", "/activity/?kind=flags")
    page.get_by_role("link", name="Search or jump to").click()
    expect(palette(page)).to_be_visible()
    page.keyboard.type("audit")
    expect(current(page)).to_have_text(re.compile("Audit log"))

    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")

    opened.value.wait_for_url("**/activity/")
    expect(palette(page)).to_be_visible()

    query(page).fill("switch dark")
    expect(current(page)).to_have_text(re.compile("Switch to dark theme"))
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.url.endswith("/activity/?kind=flags")


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


@pytest.fixture
def held(visit):
    """A page whose dialog shows the hits of "check", and the first request for those of "dark", which waits."""
    page = visit("admin", "/activity/")
    page.keyboard.press("Control+k")
    page.keyboard.type("check")
    expect(current(page)).to_have_text(re.compile("checkout-redesign"))
    requests = []
    page.route("**/search/?q=dark", lambda route: route.continue_() if requests else requests.append(route))
    query(page).fill("dark")
    wait_until(lambda: page.evaluate("true") and requests)
    [request] = requests
    return page, request


def test_enter_waits_for_the_hits_of_what_was_typed(held):
    page, request = held
    expect(found(page)).to_have_attribute("aria-busy", "true")
    page.keyboard.press("Enter")
    expect(palette(page)).to_be_visible()

    request.continue_()
    page.wait_for_url("**/features/dark-theme/")


def test_a_hit_that_was_moved_to_is_opened_at_once(held):
    page, request = held
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(current(page)).to_have_text(re.compile("checkout-redesign"))
    page.keyboard.press("Enter")

    page.wait_for_url("**/features/checkout-redesign/")
    request.abort()


def test_enter_opens_the_page_of_hits_if_the_dialog_gets_no_answer(held, watch):
    page, request = held
    page.keyboard.press("Enter")

    request.abort()
    page.wait_for_url("**/search/?q=dark")
    expect(page.get_by_role("main").get_by_role("link", name=re.compile("^dark-theme"))).to_be_visible()
    watch.faults[:] = [fault for fault in watch.faults if "htmx:sendError" not in fault]


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
    page.keyboard.press("Enter")
    expect(palette(page)).to_be_visible()

    make_narrow(page)
    fits(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    query(page).fill("")
    check_accessible(page)
    query(page).fill("check")
    expect(current(page)).to_be_visible()
    check_accessible(page)
