"""The bar at the top, times in the browser's zone, and the style guide."""

import pytest
from playwright.sync_api import expect

from flagadmin.console.styleguide import StyleGuidePage
from tests.browser.conftest import fits, make_narrow

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_phone_has_a_menu_instead_of_the_navigation(visit, script):
    page = visit("viewer", "/projects/", width=360, script=script)
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation).to_be_hidden()
    bar = page.locator(".top").bounding_box()
    assert bar is not None
    assert bar["height"] < 60
    page.get_by_role("button", name="Menu").click()
    expect(navigation).to_be_visible()
    navigation.get_by_role("link", name="Activity").click()
    page.wait_for_url("**/activity/")


def test_the_current_tab_is_in_view_on_a_phone(visit):
    page = visit("viewer", "/tag-types/", width=360)
    expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0


def test_the_account_menu_opens_the_keyboard_shortcuts_and_closes_outside(visit):
    page = visit("viewer", "/projects/")
    page.get_by_label("viewer: account").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("viewer: account").click()
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_role("link", name="Your account")).to_be_hidden()


@pytest.mark.parametrize("address", ["/playground/", "/playground/compare/"])
def test_the_results_are_within_ten_keys(visit, address):
    page = visit("viewer", address)
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#results :focus")).to_have_count(1)


def test_pages_of_a_section_are_tabs(visit):
    page = visit("admin", "/segments/")
    tabs = page.get_by_role("navigation", name="Projects")
    expect(tabs.get_by_role("link")).to_have_text(
        [
            "Projects",
            "All flags",
            "Stale flags",
            "Applications",
            "Environments",
            "Segments",
            "Context fields",
            "Strategy types",
            "Tag types",
            "Release plans",
            "Release templates",
        ]
    )
    expect(tabs.locator("[aria-current]")).to_have_text("Segments")


def test_times_are_in_the_zone_of_the_browser_with_utc_as_the_tooltip(visit):
    page = visit("admin", "/activity/")
    page.reload()  # with the zone, which the first answer could not know
    expect(page.locator("time[data-time]")).to_have_count(0)
    shown = page.locator("#list time").first
    assert "UTC" not in shown.inner_text()
    assert (shown.get_attribute("title") or "").endswith("UTC")
    plain = visit("admin", "/activity/", script=False)
    assert plain.locator("#list time").first.inner_text().endswith("UTC")


def test_a_message_goes_when_it_is_dismissed(visit):
    page = visit("admin", "/tag-types/new")
    page.get_by_label("Name").fill("team")
    page.locator("main form button").last.click()
    message = page.locator("#messages .toast")
    expect(message).to_have_count(1)
    message.get_by_role("button", name="Dismiss").click()
    expect(message).to_have_count(0)
    expect(page.locator("#main")).to_be_focused()


def test_the_style_guide_is_accessible(visit, check_accessible):
    from django.urls import path

    from flagadmin import urls

    urls.urlpatterns.insert(0, path("styleguide/", StyleGuidePage.as_view()))
    try:
        page = visit("admin", "/styleguide/")
        check_accessible(page)
        page.emulate_media(color_scheme="dark")
        check_accessible(page)
        make_narrow(page)
        check_accessible(page)
        fits(page)
    finally:
        del urls.urlpatterns[0]
