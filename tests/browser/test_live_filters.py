"""Lists are filtered while one types: the form stays as it is, the answer of an older question never comes through."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.flags import make_flag

pytestmark = pytest.mark.usefixtures("scenery")
ROLES = "/access/roles/"


def rows(page):
    return page.locator("main tbody tr")


def names_left(page, *names):
    expect(page.locator("main tbody th a")).to_have_text(list(names))


def test_typing_filters_and_keeps_focus_caret_and_the_address(visit):
    page = visit("admin", "/access/roles/?sort=-name")
    field = page.locator("main input[type=search]").first
    label = field.get_attribute("name")
    field.press_sequentially("view")
    names_left(page, "Viewer")
    expect(page).to_have_url(re.compile(rf"\?(?=.*sort=-name)(?=.*{label}=view)"))
    expect(field).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="1 role")).to_have_count(1)

    field.press("Home")
    field.press("Delete")  # "iew": the caret stays where it is
    expect(page).to_have_url(re.compile(rf"{label}=iew"))
    names_left(page, "Viewer")
    field.press_sequentially("v")
    expect(field).to_have_value("view")

    field.fill("")
    expect(rows(page)).not_to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?sort=-name$"))


def test_one_step_back_undoes_all_that_was_typed(visit):
    page = visit("admin", ROLES)
    everything = rows(page).count()
    field = page.locator("main input[type=search]").first
    for letters, asked in (("vi", "vi"), ("ew", "view")):
        field.press_sequentially(letters)
        expect(page).to_have_url(re.compile(f"={asked}$"))
    names_left(page, "Viewer")
    rows(page).get_by_role("link", name="Viewer").click()
    page.go_back()
    names_left(page, "Viewer")
    expect(field).to_have_value("view")

    page.go_back()
    expect(rows(page)).to_have_count(everything)
    expect(field).to_have_value("")
    page.go_forward()
    names_left(page, "Viewer")
    expect(field).to_have_value("view")


def test_an_older_answer_that_comes_late_changes_nothing(visit):
    page = visit("admin", ROLES)
    held = []
    page.route("**/roles/?q=vi", lambda route: held.append(route))
    field = page.locator("main input[type=search]").first
    with page.expect_request("**/roles/?q=vi"):
        field.press_sequentially("vi")
    field.press_sequentially("ew")
    names_left(page, "Viewer")
    for route in held:
        route.continue_()
    field.press_sequentially("er")
    expect(page).to_have_url(re.compile("=viewer$"))
    expect(field).to_have_value("viewer")
    names_left(page, "Viewer")


def test_a_chip_adds_a_filter_to_what_is_typed_and_removes_it(visit):
    page = visit("admin", ROLES)
    page.locator("main input[type=search]").first.press_sequentially("e")
    expect(page).to_have_url(re.compile("q=e$"))
    page.locator(".bar summary", has_text="Type").click()
    page.get_by_role("link", name="Root role, built in", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?q=e&type=root$"))
    names_left(page, "Editor", "Viewer")
    expect(page.get_by_role("button", name="Filter")).to_be_hidden()
    page.get_by_role("link", name="Remove filter Type: Root role, built in").click()
    expect(page).to_have_url(re.compile(r"\?q=e$"))


def test_a_refusal_leaves_the_list_and_says_why(visit):
    page = visit("admin", ROLES)
    everything = rows(page).count()
    page.route("**/roles/?q=*", lambda route: route.fulfill(status=400, body="<p>away</p>"))
    page.locator("main input[type=search]").first.press_sequentially("view")
    expect(page.locator("#messages .error")).to_be_visible()
    expect(rows(page)).to_have_count(everything)


def test_there_is_a_button_only_without_javascript(visit):
    for script in (False, True):
        page = visit("admin", "/account/", script=script)
        for address in ("/projects/checkout/", "/activity/", "/playground/"):
            page.goto(address)
            expect(page.get_by_role("button", name="Filter")).to_be_visible(visible=not script)


def test_the_playground_filters_its_results_and_keeps_the_form(visit):
    make_flag("dark-mode", project="checkout")
    page = visit("admin", "/playground/?context.userId=42")
    asked = page.get_by_label("userId")
    asked.fill("half an answer")
    expect(page).to_have_url(re.compile("userId=half"))
    find = page.locator("#results input[type=search]")
    find.press_sequentially("dark-t")
    names_left(page, "dark-theme")
    expect(asked).to_have_value("half an answer")
    expect(find).to_be_focused()
    expect(page).to_have_url(re.compile("q=dark-t"))
