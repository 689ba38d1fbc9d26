"""What holds on every page: accessible in both themes, fits 360 px, no foreign request, no policy report."""

import pytest

from tests.browser.pages import PAGES

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("address", PAGES, ids=PAGES)
def test_it_is_accessible_in_both_themes_and_fits_a_narrow_screen(visit, check_accessible, address):
    page = visit("admin", address)
    check_accessible(page)

    page.emulate_media(color_scheme="dark")
    check_accessible(page)

    page.set_viewport_size({"width": 360, "height": 800})
    check_accessible(page)
    _fits(page)


def test_so_is_the_login_page(visit, check_accessible):
    page = visit(None, "/activity/")
    check_accessible(page)

    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    check_accessible(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    page.set_viewport_size({"width": 360, "height": 800})
    _fits(page)


def _fits(page):
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360, f"{page.url} is {wide} px wide"
