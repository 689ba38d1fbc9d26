"""Yesterday's change is taken back in three clicks, with a look at who changes; a save is undone in one."""

import pytest
from playwright.sync_api import expect

from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/dark-theme/"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_change_is_reverted_in_three_clicks(visit, check_accessible, script):
    page = visit("admin", FLAG, script=script)
    page.get_by_role("switch", name="dark-theme in development").click()
    expect(page.get_by_role("switch", name="dark-theme in development")).to_have_attribute(
        "aria-checked", "false"
    )
    page.goto("/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Activity"))
    clicks.on(
        page.locator("article", has_text="dark-theme off in development").first.get_by_role(
            "link", name="Revert"
        )
    )
    expect(page.get_by_role("region", name="dark-theme")).to_contain_text("off → on")
    if script:
        expect(page.get_by_role("region", name="Who changes")).to_contain_text("of 10,000")
        check_accessible(page)
    clicks.on(page.get_by_role("button", name="Revert", exact=True))

    expect(page.locator(".toast")).to_contain_text("Reverted: turned dark-theme off in development.")
    assert clicks.count == 3
    page.goto(FLAG)
    expect(page.get_by_role("switch", name="dark-theme in development")).to_have_attribute(
        "aria-checked", "true"
    )


def test_a_saved_strategy_is_undone_in_one_click(visit):
    page = visit("admin", FLAG)
    place = page.get_by_role("region", name="development")
    place.get_by_role("link", name="Edit").first.click()
    page.get_by_label("Title").fill("Night owls")
    page.locator("#editor aside button[value=save]").click()
    expect(page.get_by_role("region", name="development")).to_contain_text("Night owls")

    clicks = Clicks(page)
    clicks.on(page.get_by_role("status").get_by_role("button", name="Undo"))

    expect(page.locator(".toast")).to_contain_text("Undone: ")
    expect(page.get_by_role("region", name="development")).not_to_contain_text("Night owls")
    assert clicks.count == 1


def test_the_history_of_a_flag_has_revert_in_the_row(visit):
    page = visit("admin", FLAG)
    page.get_by_role("switch", name="dark-theme in development").click()
    row = page.get_by_role("region", name="History").get_by_role("listitem").first
    expect(row).to_contain_text("turned the flag off in development")
    row.get_by_role("link", name="Revert", exact=True).click()
    page.get_by_role("button", name="Revert", exact=True).click()
    expect(page.get_by_role("switch", name="dark-theme in development")).to_have_attribute(
        "aria-checked", "true"
    )
