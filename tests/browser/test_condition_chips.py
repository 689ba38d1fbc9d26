"""Browser tests of constraint values as chips: what separates values, and what quotes keep together."""

import pytest
from playwright.sync_api import expect

from projects.models import Strategy
from tests.browser.conftest import make_narrow
from tests.browser.journeys import add_condition

pytestmark = pytest.mark.usefixtures("scenery")
NEW = "/projects/checkout/features/checkout-redesign/strategies/new?environmentId=production"


@pytest.fixture
def editor(visit):
    """A new strategy with a condition on city."""
    page = visit("admin", NEW)
    add_condition(page, "city")
    expect(page.get_by_label("Values of condition 1")).to_be_focused()
    return page


def chips(page):
    return page.locator(".value-chip")


def save(page):
    """The values that are stored."""
    page.get_by_role("button", name="Add now").click()
    expect(page.get_by_text("Added a strategy to checkout-redesign in production.")).to_be_visible()
    return Strategy.objects.get(constraints__0__contextName="city").constraints[0]["values"]


def test_commas_and_enter_make_chips_and_what_is_shown_is_saved(editor, check_accessible):
    values = editor.get_by_label("Values of condition 1")
    values.press_sequentially("US, DE")
    expect(editor.locator("#sentence")).to_contain_text("city is one of US, DE")
    values.press("Enter")
    check_accessible(editor)
    editor.emulate_media(color_scheme="dark")
    make_narrow(editor)
    check_accessible(editor)
    values.press_sequentially('"Paris, Texas"')
    values.press("Enter")
    values.press_sequentially("Oslo")

    expect(chips(editor)).to_have_text(["US×", "DE×", "Paris, Texas×"])
    assert save(editor) == ["US", "DE", "Paris, Texas", "Oslo"]


def test_pasted_lines_are_chips_and_one_can_be_taken_away(editor):
    values = editor.get_by_label("Values of condition 1")
    values.focus()
    editor.evaluate("navigator.clipboard.writeText('Oslo\\nBergen\\n\\nRome, Milan')")
    values.press("Control+V")
    expect(chips(editor)).to_have_text(["Oslo×", "Bergen×", "Rome×", "Milan×"])

    editor.get_by_role("button", name="Remove Bergen").click()
    values.press("Backspace")
    expect(values).to_have_value("Milan")
    values.fill("")

    assert save(editor) == ["Oslo", "Rome"]


def test_what_is_typed_while_the_form_is_redrawn_stays(editor):
    values = editor.get_by_label("Values of condition 1")
    values.press_sequentially("Oslo,")
    expect(editor.locator("#sentence")).to_contain_text("city is one of Oslo")
    held = []
    editor.route("**/strategies/new?*", lambda route: held.append(route), times=1)
    editor.get_by_label("Operator of condition 1").select_option("NOT_IN")
    values.press_sequentially("Bergen,Tr")
    held[0].continue_()
    expect(editor.locator("#sentence")).to_contain_text("city is none of Oslo")
    values.press_sequentially("ondheim")
    values.press("Enter")

    expect(chips(editor)).to_have_text(["Oslo×", "Bergen×", "Trondheim×"])
    assert save(editor) == ["Oslo", "Bergen", "Trondheim"]


def test_a_problem_is_shown_on_leaving_its_field(visit):
    page = visit("admin", NEW)
    faults = page.locator("#p-rollout-error li")
    rollout = page.get_by_label("Rollout percentage")
    rollout.fill("150")
    expect(page.locator("#sentence")).to_contain_text("SDKs cannot read the percentage 150")
    expect(faults).to_have_count(0)

    rollout.press("Tab")

    expect(faults).to_contain_text("use a whole number from 0 to 100")
