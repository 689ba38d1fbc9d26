"""Browser tests of the applications list: searching, sorting, opening and deleting an application."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")
SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])


@SCRIPT
def test_the_list_is_searched_sorted_and_narrowed_and_the_address_keeps_it(visit, script):
    page = visit("viewer", "/projects/checkout/", script=script)
    page.get_by_role("link", name="Applications 2").click()
    names = page.locator("table.stack tbody th")
    expect(names).to_have_text(["ios-app", "web-shop"])
    expect(page.get_by_role("row", name="web-shop")).to_contain_text(
        "unleash-node-sdk 6.11.0 (oldest), 6.12.1"
    )

    page.get_by_role("link", name=re.compile("^Application ")).click()
    expect(names).to_have_text(["web-shop", "ios-app"])
    page.get_by_label("Name, SDK or environment").fill("NODE")
    if not script:
        page.get_by_role("button", name="Filter").click()
    expect(names).to_have_text(["web-shop"])
    page.locator(".bar summary", has_text="Environment").click()
    page.get_by_role("link", name="development", exact=True).click()

    expect(names).to_have_text(["web-shop"])
    page.wait_for_url("**environment=development*")
    assert {"q=NODE", "environment=development", "sort=-name"} <= set(page.url.split("?")[1].split("&"))
    page.get_by_role("row", name="web-shop").locator("summary").click()
    expect(page.get_by_text("web-shop-development")).to_be_visible()


def test_an_application_is_looked_into_and_deleted(visit):
    page = visit("admin", "/projects/checkout/applications/?q=ios")
    page.get_by_role("link", name="ios-app").click()
    expect(page.get_by_role("row", name="apple-pay")).to_contain_text("production")
    page.get_by_role("button", name="Delete application ios-app").click()

    expect(page.get_by_role("status")).to_contain_text("Deleted application ios-app.")
    expect(page.locator("table.stack tbody th")).to_have_text(["web-shop"])
