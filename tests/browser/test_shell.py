"""The bar at the top, times in the browser's zone, and the style guide."""

import pytest
from playwright.sync_api import expect

from flagadmin.console.start import StyleGuidePage
from tests.browser.looks import Window

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_phone_has_a_menu_instead_of_the_navigation_and_the_current_tab_in_view(visit, script):
    page = visit("viewer", "/tag-types/", width=360, script=script)
    if script:
        expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=1)
        assert page.evaluate("scrollY") == 0
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation).to_be_hidden()
    bar = page.locator(".top").bounding_box()
    assert bar is not None
    assert bar["height"] < 60
    page.get_by_role("button", name="Menu").click()
    expect(navigation).to_be_visible()
    navigation.get_by_role("link", name="What happened").click()
    page.wait_for_url("**/what-happened/")


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


def test_the_results_are_within_ten_keys(visit):
    page = visit("viewer", "/playground/")
    for address in ("/playground/", "/playground/compare/"):
        page.goto(address)
        for _ in range(2):
            page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator("#results :focus")).to_have_count(1)


def test_times_are_in_the_zone_of_the_browser_with_utc_as_the_tooltip(visit):
    page = visit("admin", "/activity/")
    page.reload()  # with the zone, which the first answer could not know
    expect(page.locator("time[data-time]")).to_have_count(0)
    shown = page.locator("#list time").first
    assert "UTC" not in shown.inner_text()
    assert (shown.get_attribute("title") or "").endswith("UTC")
    plain = visit("admin", "/activity/", script=False)
    assert plain.locator("#list time").first.inner_text().endswith("UTC")


def test_the_style_guide_is_accessible(visit):
    from django.urls import path

    from flagadmin import urls

    urls.urlpatterns.insert(0, path("styleguide/", StyleGuidePage.as_view()))
    try:
        Window(visit("admin", "/")).check("/styleguide/")
    finally:
        del urls.urlpatterns[0]
