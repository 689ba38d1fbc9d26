"""Messages stand above the page: they move nothing, hide nothing that has the focus, and go when they are dismissed."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow
from tests.browser.pages import filled

pytestmark = pytest.mark.usefixtures("scenery")
LIST = "/projects/checkout/"
SHIFTS = """() => new Promise((done) => {
    const seen = new PerformanceObserver(() => {});
    seen.observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(
        seen.takeRecords().map((each) => [each.value, ...each.sources.map(({node}) =>
            node?.outerHTML?.slice(0, 120) ?? node?.parentElement?.outerHTML?.slice(0, 120))])), 100)));
})"""
PLACES = (
    "() => [...document.querySelectorAll('main [role=switch]')].map((each) => each.getBoundingClientRect().y)"
)
# Whatever is reached with the keyboard can be seen, at least in part (WCAG 2.4.11).
HIDDEN_FOCUS = """() => {
    const box = document.activeElement.getBoundingClientRect();
    if (!box.width || document.activeElement.closest("#messages")) return "";
    const toast = document.querySelector(".toast").getBoundingClientRect();
    const inside = box.left >= toast.left && box.right <= toast.right && box.top >= toast.top && box.bottom <= toast.bottom;
    return inside ? document.activeElement.outerHTML : "";
}"""


def switch_in_development(page):
    page.get_by_role("switch", name="gift-cards in development").click()
    expect(page.locator("#messages .toast")).to_contain_text("gift-cards")


@pytest.mark.parametrize("width", [1440, 360])
def test_a_message_moves_nothing(visit, width):
    page = visit("admin", LIST, width=width)
    page.get_by_role("switch", name="gift-cards in development").scroll_into_view_if_needed()
    before = page.evaluate(PLACES)

    switch_in_development(page)

    assert page.evaluate(PLACES) == before
    shifts = page.evaluate(SHIFTS)
    assert not shifts
    message = page.locator("#messages .toast").bounding_box()
    assert message
    assert message["y"] + message["height"] > 850 - 20  # at the bottom, and all of it in the window
    assert message["y"] + message["height"] <= 900
    assert message["x"] < 25
    fits(page, width)


def test_pages_with_a_message_do_not_shift(visit):
    page = visit("admin", "/tag-types/new")
    page.get_by_label("Name").fill("team")
    page.locator("main form button").last.click()
    expect(page.locator("#messages .toast")).to_be_visible()
    assert not page.evaluate(SHIFTS)


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/activity/",
        LIST,
        "/projects/checkout/features/checkout-redesign/",
        "/segments/",
        "/playground/",
        "/projects/",
        "/imports/",
        "/access/roles/",
    ],
)
def test_pages_do_not_shift_while_they_load(visit, address):
    page = visit("admin", filled(address))
    assert not page.evaluate(SHIFTS)


def test_what_has_the_focus_is_not_hidden_by_a_message(visit):
    page = visit("admin", LIST)
    switch_in_development(page)
    page.locator("main").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        assert not page.evaluate(HIDDEN_FOCUS)


def test_a_message_is_announced_and_read_without_script(visit, check_accessible):
    page = visit("admin", LIST, script=False)
    page.get_by_role("switch", name="gift-cards in development").click()
    status = page.get_by_role("status")
    expect(status).to_contain_text("gift-cards")
    expect(status.get_by_role("button", name="Undo")).to_be_visible()
    page.mouse.wheel(0, 10_000)
    foot = page.locator("footer.foot").bounding_box()
    message = page.locator(".toast").bounding_box()
    assert foot
    assert message
    assert foot["y"] + 30 < message["y"]  # what the page ends with can be scrolled out from below it

    page = visit("admin", LIST, width=360, theme="dark")
    switch_in_development(page)
    check_accessible(page)


@pytest.mark.parametrize("width", [1440, 360])
def test_a_menu_at_the_bottom_opens_inside_the_window(visit, width):
    page = visit("admin", "/projects/checkout/features/checkout-redesign/", width=width)
    menus = page.locator("main details.more:has(> summary:visible)")
    assert menus.count() > 2
    for menu in menus.all():
        menu.locator("> summary").evaluate("(each) => each.scrollIntoView({block: 'end'})")
        menu.locator("> summary").evaluate("(each) => each.click()")
        box = menu.locator("> .menu, > .popup").bounding_box()
        assert box
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900, menu.inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
    make_narrow(page)
    fits(page)
