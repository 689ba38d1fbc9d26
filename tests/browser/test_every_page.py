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
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360, f"{address} is {wide} px wide"
