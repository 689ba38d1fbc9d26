"""Browser tests of the strategy editor: the slider, what changes, the confirmation in production, long values."""

import pytest
from playwright.sync_api import expect

from playground.models import SavedContext
from projects.models import FlagEnvironment, Strategy
from tests.browser.journeys import Clicks

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/checkout-redesign/"


def strategy():
    return Strategy.objects.get(flag__name="checkout-redesign", environment="production")


def address():
    return f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy().pk}"


def test_slider_and_number_move_each_other_and_raising_keeps_everyone_is_said_only_if_true(visit):
    page = visit("admin", address())
    slider, field = page.get_by_role("slider", name="Rollout"), page.get_by_label("Rollout percentage")
    expect(slider).to_have_value("10")
    buckets = page.get_by_role("img", name="100 buckets of users")
    expect(buckets).to_have_attribute("aria-label", "100 buckets of users: 1 to 10 keep it")
    slider.press("Shift+ArrowRight")
    expect(field).to_have_value("20")
    expect(buckets).to_have_attribute("aria-label", "100 buckets of users: 1 to 10 keep it, 11 to 20 get it")
    field.press("Shift+ArrowDown")
    expect(slider).to_have_value("10")

    slider.press("ArrowRight")

    expect(field).to_have_value("11")
    expect(slider).to_have_attribute("aria-valuetext", "11 %")
    expect(page.locator("#changes")).to_have_text("1 unsaved change")
    field.fill("33")
    expect(slider).to_have_attribute("aria-valuetext", "33 %")
    expect(page.locator("#sentence")).to_contain_text("On for 33 %")

    field.fill("10")
    hint = page.get_by_text("Raising the percentage keeps everyone already included.")
    expect(hint).to_have_count(0)
    field.fill("50")
    expect(hint).to_be_visible()
    field.fill("5")
    expect(hint).to_have_count(0)
    field.fill("50")
    expect(hint).to_be_visible()
    page.get_by_text("All settings").last.click()
    page.get_by_label("Group", exact=True).fill("other")
    page.keyboard.press("Tab")
    expect(page.locator("#changes")).to_have_text("2 unsaved changes")
    expect(hint).to_have_count(0)


def test_variants_have_a_share_each_and_the_share_that_is_typed_is_saved(visit):
    page = visit("admin", f"{FLAG}variants?environmentId=development")
    for number in (1, 2):
        page.get_by_role("button", name="Add variant").click()
        expect(page.get_by_label(f"Name of variant {number}")).to_be_focused()
    expect(page.locator("#split")).to_contain_text("variant 1 50 %")
    expect(page.locator("#split")).to_contain_text("variant 2 50 %")
    page.get_by_role("button", name="Remove variant 2").click()
    expect(page.get_by_role("button", name="Add variant")).to_be_focused()

    for number, name in enumerate(("blue", "red", "green"), 1):
        if number > 1:
            page.get_by_role("button", name="Add variant").click()
        page.get_by_label(f"Name of variant {number}").fill(name)
    share, fixed = page.get_by_label("Share of variant 1 in percent"), page.get_by_label("fixed").first
    shown = share.input_value()

    share.fill("80")
    expect(fixed).to_be_checked()
    fixed.uncheck()
    expect(share).to_have_value(shown)
    share.fill("80")
    page.get_by_role("button", name="Save").first.click()
    page.wait_for_url(f"**{FLAG}")

    place = FlagEnvironment.objects.get(flag__name="checkout-redesign", environment="development")
    assert [(v["name"], v["weight"]) for v in place.variants] == [("blue", 800), ("green", 100), ("red", 100)]


def test_the_bar_says_what_is_saved_in_two_clicks(visit, check_accessible):
    page = visit("admin", FLAG)
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    page.get_by_label("Rollout percentage").fill("60")
    expect(page.get_by_role("button", name="Save now: 4,9")).to_be_visible()
    page.get_by_role("link", name="All settings").click()
    page.get_by_label("Title").fill("Half")
    page.get_by_role("switch", name="Enabled").uncheck(force=True)
    expect(page.locator("#changes")).to_have_text("3 unsaved changes")
    expect(page.locator("#preview")).to_contain_text("60 %")
    page.evaluate("scrollTo(0, 0)")
    check_accessible(page)
    assert not strategy().disabled

    clicks.on(page.get_by_role("button", name="Save now"))
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()
    assert (strategy().parameters["rollout"], strategy().disabled) == ("60", True)
    assert clicks.count == 2


def test_enter_in_a_field_saves_nothing_and_ctrl_enter_presses_the_button(visit):
    page = visit("admin", address())
    page.get_by_label("Rollout percentage").fill("20")
    page.keyboard.press("Enter")
    expect(page.locator("#changes")).to_have_text("1 unsaved change")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert strategy().parameters["rollout"] == "10"
    page.get_by_label("Rollout percentage").press("Control+Enter")
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()
    assert strategy().parameters["rollout"] == "20"


def test_breaking_an_expectation_warns_before_saving_in_one_click(visit):
    expected = {"flag": "checkout-redesign", "environment": "production", "enabled": True, "variant": None}
    SavedContext.objects.create(name="Insider", context={"userId": "9"}, expectations=[expected])
    page = visit("admin", address())
    clicks = Clicks(page)
    page.get_by_label("Rollout percentage").fill("5")

    warning = page.get_by_role("region", name="Who changes")
    expect(warning).to_contain_text("Breaks 1 expectation")
    expect(warning).to_contain_text("checkout-redesign is off in production for Insider, expected on")
    clicks.on(page.get_by_role("button", name="Save now"))
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()

    page.goto("/playground/expectations/?met=no&q=Insider")
    expect(page.locator("tbody")).to_contain_text("userId 9 is in bucket 9 and the rollout stops at 5 %")
    assert clicks.count == 1


def test_a_double_click_adds_one_strategy(visit, scenery):
    page = visit("admin", f"{FLAG}strategies/new?environmentId=development")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)

    button = page.get_by_role("button", name="Add now")
    button.evaluate("button => { button.click(); setTimeout(() => button.click(), 20); }")

    expect(page.get_by_text("Added a strategy to checkout-redesign in development.")).to_be_visible()
    assert len(sent) == 1
