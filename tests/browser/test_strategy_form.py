"""Browser tests of what the strategy form says and where the focus goes; journeys: narrowing a rollout, and variants."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from flagadmin.core.http.responses import iso
from projects.models import Strategy
from releases.models import Schedule
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks, add_condition

pytestmark = pytest.mark.usefixtures("scenery")
FLAG = "/projects/checkout/features/checkout-redesign/"
NEW = f"{FLAG}strategies/new?environmentId=production"


def strategies() -> list[Strategy]:
    rows = Strategy.objects.filter(flag__name="checkout-redesign", environment="production")
    return list(rows.order_by("sort_order", "created_at"))


def address() -> str:
    return f"{FLAG}strategies/edit?environmentId=production&strategyId={strategies()[0].pk}"


def narrow_to_berlin(page: Page) -> None:
    add_condition(page, "city")
    expect(page.get_by_label("Values of condition 1")).to_be_focused()
    expect(page.locator("#sentence")).to_contain_text("where city … (add a value).")
    page.keyboard.type("Berlin,")


def test_half_of_one_city_and_the_present_rule_for_everybody_else_in_two_clicks(visit):
    page = visit("admin", FLAG)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    page.get_by_label("Rollout percentage").fill("50")
    narrow_to_berlin(page)
    keep = page.get_by_role("checkbox", name="Everyone else: as now")
    expect(keep).to_be_checked()
    expect(page.locator("#preview")).to_contain_text("Added strategy")
    clicks.on(page.get_by_role("button", name="Save now"))
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()

    some, others = strategies()
    assert (some.parameters["rollout"], some.constraints[0]["values"]) == ("50", ["Berlin"])
    assert (others.parameters["rollout"], others.constraints) == ("10", [])
    assert clicks.count == 2


def test_half_of_one_country_is_taken_in_steps_in_four_clicks_and_two_fields(visit, check_accessible):
    page = visit("admin", FLAG)
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    page.get_by_label("Rollout percentage").fill("50")
    add_condition(page, "country")
    clicks.on(page.get_by_label("DE", exact=True))
    expect(page.get_by_role("checkbox", name="Everyone else: as now")).to_be_checked()
    clicks.on(page.get_by_label("In steps"))
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.nth(2)).to_have_text(re.compile(r"50 %.*\d+ off → on", re.DOTALL))
    check_accessible(page)
    page.emulate_media(color_scheme="dark")
    make_narrow(page)
    fits(page)
    check_accessible(page)
    clicks.on(page.get_by_role("button", name="Start 15 → 25 → 50 %"))

    expect(page.get_by_text("Before 25 %")).to_be_visible()
    some, others = strategies()
    assert (some.parameters["rollout"], some.constraints[0]["values"]) == ("15", ["DE"])
    assert (others.parameters["rollout"], others.constraints) == ("10", [])
    assert clicks.count == 4


def test_a_switch_is_scheduled_in_the_own_zone_in_three_clicks_and_one_field(visit):
    page = visit("admin", FLAG)
    clicks = Clicks(page)
    clicks.on(page.get_by_role("switch", name="checkout-redesign in production"))
    dialog = page.get_by_role("dialog")
    clicks.on(dialog.get_by_label("At a time"))
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(dialog.locator("label[for=when-at]")).to_have_text(f"On ({zone})")
    friday = timezone.now() + timedelta(days=(4 - timezone.now().weekday()) % 7 or 7)
    dialog.locator("#when-at").fill(f"{friday:%Y-%m-%d}T09:00")
    clicks.on(dialog.get_by_role("button", name=re.compile("Schedule for Fri.*09:00")))
    expect(page.get_by_label("State").locator("[aria-current]")).to_contain_text("Scheduled")
    at = page.evaluate(f"new Date('{friday:%Y-%m-%d}T09:00').toISOString()")
    assert iso(Schedule.objects.get().at) == at
    assert clicks.count == 3


def test_what_is_pressed_is_not_replaced_before_it_is_released(visit):
    page = visit("admin", address())
    narrow_to_berlin(page)
    keep = page.get_by_role("checkbox", name="Everyone else: as now")
    expect(keep).to_be_visible()
    page.wait_for_load_state(
        "networkidle"
    )  # an answer that redraws the field while it is filled would keep what it had
    held: list[Route] = []
    page.route("**/strategies/edit?*", lambda route: held.append(route))
    page.get_by_label("Rollout percentage").fill("50")
    keep.hover()  # nothing is redrawn, so it stays where it is
    page.mouse.down()  # leaves the field, which asks at once
    while not held:
        page.wait_for_timeout(20)
    with page.expect_event("requestfinished"):
        held[-1].continue_()
        page.unroute("**/strategies/edit?*")
    page.mouse.up()
    expect(keep).to_be_checked()
    expect(page.locator("#preview")).to_contain_text("Added strategy")
    expect(page.locator("#preview")).to_contain_text("50 %")


def test_what_is_ticked_while_the_form_is_redrawn_stays(visit):
    page = visit("admin", address())
    narrow_to_berlin(page)
    keep = page.get_by_role("checkbox", name="Everyone else: as now")
    expect(keep).to_be_visible()
    held = []
    page.route("**/strategies/edit?*", lambda route: held.append(route), times=1)
    with page.expect_request("**/strategies/edit?*"):
        page.get_by_label("Operator of condition 1").select_option("NOT_IN")
    keep.check()
    held[0].continue_()
    expect(page.locator("#preview")).to_contain_text("Added strategy")
    expect(keep).to_be_checked()


def test_four_variants_with_payloads_get_the_shares_that_were_typed_in_seven_clicks(visit):
    page = visit("admin", FLAG)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Roll out strategy 1 in production"))
    clicks.on(page.get_by_role("link", name="All settings"))
    for number, name in enumerate(("blue", "green", "red"), 1):
        clicks.on(page.get_by_role("button", name="Add variant"))
        expect(page.get_by_label(f"Name of variant {number}")).to_be_focused()
        page.keyboard.type(name)
        expect(page.get_by_label(f"Payload of variant {number}")).to_be_hidden()
    page.get_by_label("Share of variant 1 in percent").fill("80")
    clicks.choose(page.get_by_label("Payload type of variant 1"), "json")
    page.get_by_label("Payload of variant 1").fill('{"color": "blue"}')
    clicks.on(page.get_by_role("button", name="Save now"))
    expect(page.get_by_text("Changed a strategy of checkout-redesign in production.")).to_be_visible()

    weights = {variant["name"]: variant["weight"] for variant in strategies()[0].variants}
    assert weights == {"blue": 800, "green": 100, "red": 100}
    assert clicks.count == 7


def test_a_new_strategy_is_not_called_saved_and_all_errors_stand_at_their_inputs_in_red(
    visit, check_accessible
):
    page = visit("admin", NEW)
    expect(page.get_by_text("Not saved")).to_be_visible()
    expect(page.get_by_text("Raising the percentage keeps everyone")).to_have_count(0)
    page.get_by_label("Rollout percentage").fill("150")
    add_condition(page, "city")
    field = page.get_by_label("Values of condition 1")
    expect(field).to_be_focused()
    expect(page.get_by_role("region", name="Who changes")).to_contain_text("Not compared yet")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")

    rollout = page.get_by_label("Rollout percentage")
    rollout.fill("151")
    expect(rollout).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#c-0-error")).to_contain_text("needs at least one value")
    expect(page.locator("#p-rollout-error li")).to_have_count(1)
    check_accessible(page)

    rollout.fill("50")
    expect(rollout).not_to_have_attribute("aria-invalid", "true")
