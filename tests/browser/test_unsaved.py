"""A form with something unsaved asks before its page is left."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/checkout-redesign/"


@pytest.fixture
def asked(visit):
    """A function that opens a page, and the questions that it asked since."""
    questions = []

    def open_page(address):
        page = visit("admin", address)

        def answer(dialog):
            questions.append(dialog.type)
            dialog.accept()

        page.on("dialog", answer)
        return page

    return open_page, questions


def leave(page):
    page.get_by_role("navigation", name="Main").get_by_role("link", name="What happened").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What happened")


def edit(page):
    page.goto(FLAG)
    page.get_by_role("region", name="production").get_by_role("link", name="Roll out").first.click()
    page.get_by_role("link", name="All settings").click()


def test_what_was_typed_or_came_back_unsaved_or_with_problems_asks(asked):
    open_page, questions = asked
    page = open_page("/account/")
    edit(page)
    page.get_by_label("Title").click()
    page.keyboard.type("Half of them")
    leave(page)
    assert questions == ["beforeunload"]

    edit(page)
    page.get_by_label("Title").fill("Half of them")
    page.get_by_label("Title").press("Enter")
    expect(page.locator("#changes")).to_have_text("1 unsaved change")
    leave(page)
    assert questions == ["beforeunload"] * 2

    page.goto("/tag-types/new")
    page.get_by_label("Name").fill("x" * 100)
    page.locator("main form button").last.click()
    expect(page.locator("[aria-invalid=true]").first).to_be_focused()
    leave(page)
    assert questions == ["beforeunload"] * 3


def test_saving_discarding_what_was_taken_back_filters_and_ticks_do_not_ask(asked):
    open_page, questions = asked
    page = open_page("/account/")
    for button in ("Discard", "Save"):
        edit(page)
        page.get_by_label("Title").click()
        page.keyboard.type(" more")
        if button == "Discard":
            page.get_by_role("link", name="Discard").click()
        else:
            page.get_by_role("button", name="Save now").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("checkout-redesign")

    page.goto("/tag-types/new")
    page.get_by_label("Name").click()
    page.keyboard.type("x")
    page.keyboard.press("Backspace")
    leave(page)

    page.goto("/projects/checkout/")
    page.get_by_role("checkbox", name="Select gift-cards").check()
    page.locator("#find, [type=search]").first.click()
    page.keyboard.type("gift")
    leave(page)
    assert questions == []
