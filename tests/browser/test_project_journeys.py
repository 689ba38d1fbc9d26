"""Journeys on a project's pages, with their number of clicks."""

import pytest
from playwright.sync_api import expect

from projects.models import FlagEnvironment
from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")


def is_on(flag: str, environment: str = "production") -> bool:
    return FlagEnvironment.objects.filter(flag__name=flag, environment=environment, enabled=True).exists()


def test_the_search_leads_to_archiving_a_flag(visit):
    page = visit("admin", "/")
    clicks = Clicks(page)
    page.keyboard.press("Control+k")
    words = page.get_by_role("combobox", name="Search or jump to")
    words.fill("archive portal-read-only")
    expect(page.get_by_role("option", name="Archive portal-read-only…")).to_be_visible()
    clicks.enter(words)

    expect(page.locator("main")).to_contain_text("portal-read-only was evaluated by portal-web")
    assert clicks.count == 1


def test_several_flags_are_turned_off_together_and_back_on(visit):
    page = visit("admin", "/projects/checkout/")
    for name in ("gift-cards", "checkout-redesign"):
        page.get_by_label(f"Select {name}").check()
    bar = page.get_by_role("form", name="Selected flags")
    bar.locator("summary", has_text="Turn off in").click()
    bar.get_by_role("button", name="development").last.click()
    expect(page.locator("main tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Turn off 2 flags in development").click()

    expect(page.get_by_role("status").first).to_contain_text("Turned off 2 flags in development.")
    assert not is_on("gift-cards", "development")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("Undone: turned 2 flags off in development")
    assert is_on("gift-cards", "development")


def test_names_have_room_on_a_tablet(visit):
    page, narrowest = visit("admin", "/", width=820), {}
    for address in ("/projects/", "/projects/checkout/", "/flags/"):
        page.goto(address)
        names = page.locator("tbody th")
        expect(names.first).to_be_visible()
        narrowest[address] = min(name.bounding_box()["width"] for name in names.all())
    assert {address: width for address, width in narrowest.items() if width < 152} == {}
