"""Messages stand above the page: they move nothing, hide nothing that has the focus, and go when they are dismissed."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import find_shifts, fits, make_narrow

pytestmark = pytest.mark.usefixtures("scenery")
LIST = "/projects/checkout/"
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
def test_a_message_moves_nothing(visit, width, check_accessible):
    page = visit("admin", LIST, width=width)
    page.get_by_role("switch", name="gift-cards in development").scroll_into_view_if_needed()
    before = page.evaluate(PLACES)

    switch_in_development(page)

    assert page.evaluate(PLACES) == before
    shifts = find_shifts(page)
    assert not shifts
    message = page.locator("#messages .toast").bounding_box()
    assert message
    assert message["y"] + message["height"] > 850 - 20  # at the bottom, and all of it in the window
    assert message["y"] + message["height"] <= 900
    assert message["x"] < 25
    fits(page, width)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)


def test_pages_with_a_message_do_not_shift_and_it_goes_when_it_is_dismissed(visit):
    page = visit("admin", "/tag-types/new")
    page.get_by_label("Name").fill("team")
    page.locator("main form button").last.click()
    message = page.locator("#messages .toast")
    expect(message).to_have_count(1)
    expect(message).to_be_visible()
    assert not find_shifts(page)
    message.get_by_role("button", name="Dismiss").click()
    expect(message).to_have_count(0)
    expect(page.locator("#main")).to_be_focused()


def test_pages_do_not_shift_while_they_load(visit):
    page, shifts = visit("admin", "/"), {}
    for address in (
        "/",
        "/activity/",
        LIST,
        "/projects/checkout/features/checkout-redesign/",
        "/segments/",
        "/playground/",
        "/projects/",
        "/imports/",
        "/access/roles/",
    ):
        page.goto(address)
        shifts[address] = find_shifts(page)
    assert {address: found for address, found in shifts.items() if found} == {}


def test_the_page_of_a_flag_does_not_shift_when_its_expectations_are_checked(visit):
    page = visit("admin", "/account/")
    place = "document.querySelector('[aria-label=Expectations]').getBoundingClientRect().height"
    answers: list[float] = []

    def hold_back(route):
        answers.append(page.evaluate(place))
        route.continue_()

    page.route("**/expectations", hold_back)
    page.goto("/projects/checkout/features/checkout-redesign/")
    page.get_by_label("Expectations").scroll_into_view_if_needed()
    expect(page.get_by_label("Expectations").get_by_role("link", name="Why")).to_be_visible()
    assert answers == [page.evaluate(place)]


def test_what_has_the_focus_is_not_hidden_by_a_message(visit):
    page = visit("admin", LIST)
    switch_in_development(page)
    page.locator("main").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        assert not page.evaluate(HIDDEN_FOCUS)


def test_a_message_is_announced_and_read_without_script(visit):
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


def test_a_menu_at_the_bottom_opens_inside_the_window(visit):
    page = visit("admin", "/projects/checkout/features/checkout-redesign/")
    check_menus(page, 1440)
    make_narrow(page)
    check_menus(page, 360)
    fits(page)


def check_menus(page, width):
    height = page.viewport_size["height"]
    menus = page.locator("main details.more:has(> summary:visible)")
    assert menus.count() > 2
    for menu in menus.all():
        menu.locator("> summary").evaluate("(each) => each.scrollIntoView({block: 'end'})")
        menu.locator("> summary").evaluate("(each) => each.click()")
        box = menu.locator("> .menu, > .popup").bounding_box()
        assert box
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height, menu.inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
