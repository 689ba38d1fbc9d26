"""What holds on every page: accessible in both themes, fits 360 px, no foreign request, no policy report."""

import pytest

from tests.browser.pages import PAGES

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_it_is_accessible(visit, check_accessible, address, theme):
    check_accessible(visit("admin", address, theme=theme))


@pytest.mark.parametrize("address", PAGES)
def test_it_fits_a_narrow_screen(visit, address):
    page = visit("admin", address, width=360)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
