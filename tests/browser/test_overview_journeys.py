"""From the start page: what changed yesterday, and an import without two of its flags, in few clicks."""

from playwright.sync_api import expect

from flagadmin.demo.load import load_demo
from tests.browser.looks import Window

PAGES = ("/", "/activity/", "/imports/", "/import/")


def test_the_demos_overview_fits_phones_and_is_accessible(visit, transactional_db):
    load_demo()
    window = Window(visit("demo", "/account/"))
    window.check(*PAGES)
    page = window.page
    page.goto("/")
    page.get_by_role("link", name="Import into checkout").click()
    window.narrow()
    expect(page.get_by_role("button", name="Send for review")).to_be_in_viewport()
    assert window.look() == {}
