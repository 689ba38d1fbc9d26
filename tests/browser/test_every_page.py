"""Every page is accessible in both themes, fits 360 px, and makes no external request or CSP violation."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow, person
from tests.browser.pages import PAGES, filled, meant_status

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("address", PAGES, ids=PAGES)
def test_it_is_accessible_in_both_themes_and_fits_a_narrow_screen(visit, check_accessible, address):
    page = visit("admin", filled(address))
    check_accessible(page)

    page.emulate_media(color_scheme="dark")
    check_accessible(page)

    make_narrow(page)
    check_accessible(page)
    fits(page)


def test_every_address_leads_to_its_page():
    """An error page is accessible too: what is checked above has to be the page that is meant."""
    browser = Client()
    browser.force_login(person("admin"))
    found = {address: browser.get(filled(address)).status_code for address in PAGES}
    assert found == {address: meant_status(address) for address in PAGES}


def test_so_is_the_login_page(visit, check_accessible):
    page = visit(None, "/activity/")
    check_accessible(page)

    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    check_accessible(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    make_narrow(page)
    fits(page)
