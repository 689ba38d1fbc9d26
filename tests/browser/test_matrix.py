"""Browser tests of the matrix: reasons appear under the pointer and below, and nothing moves sideways."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")
ADDRESS = "/playground/?environment=production&context.userId=42,7&show=all"
WIDTHS = (
    "() => [...document.querySelectorAll('.matrix thead tr:last-child th')].map((head) => head.offsetWidth)"
)


def test_reasons_appear_without_changing_the_columns_and_the_last_context_is_one_click_away(visit):
    page = visit("admin", ADDRESS)
    row = page.locator(".matrix tbody tr").first
    cell, before = row.locator("td").first, page.evaluate(WIDTHS)
    expect(cell.locator(".why")).to_be_hidden()

    cell.hover()
    expect(cell.locator(".why")).to_be_visible()
    assert page.evaluate(WIDTHS) == before
    row.locator("summary").click()
    expect(cell.locator(".why")).to_be_visible()
    assert page.evaluate(WIDTHS) == before

    page.goto("/playground/")
    page.get_by_role("link", name="Last context").click()
    expect(page.get_by_label("userId", exact=True)).to_have_value("42,7")
