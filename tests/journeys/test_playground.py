"""The playground without JavaScript: every button is a form's, and the address says everything."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from flagadmin.demo.flags import VISITOR
from flagadmin.demo.load import load_demo
from groups.access import Caller
from groups.login.links import create_login_link
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from tests.browser.pages import ADA
from tests.support.walks import read_text


def row(page, flag):
    return read_text(page.part(flag))


def count(page, table="table.results"):
    return len(page.page.select(f"{table} tbody tr"))


@pytest.mark.usefixtures("db")
def test_the_demos_link_opens_the_evaluated_playground(walk):
    fields = "&".join(f"context.{name}={value}" for name, value in VISITOR.items())
    link = create_login_link(load_demo(), f"/playground/?environment=production&{fields}")
    page = walk(None, re.sub(r"^https?://[^/]+", "", link))
    if page.heading != "Playground":
        page.press("Log in as")
    assert page.heading == "Playground"
    results = read_text(page.page.select_one("table.results"))
    reasons = (
        "userId 42 is in bucket 53 and the rollout stops at 50 %",
        "Not in segment beta-testers",
        "Depends on checkout-redesign, which is off here",
        "only your SDK can evaluate it",
        "Switched off in production",
    )
    assert [reason for reason in reasons if reason not in results] == []
    assert "ranker-b" in row(page, "search-v2")


def test_results_are_narrowed_down(walk, scenery):
    page = walk("viewer", f"/playground/?{ADA}")
    page.open(page.page.select_one("a.chip.unknown")["href"])
    assert count(page) == 1
    assert "only your SDK can evaluate it" in page.text
    assert re.search(r"context.userId=42.*result=unknown", page.address)


def test_a_field_of_ones_own_is_added(walk, scenery):
    page = walk("viewer", f"/playground/?{ADA}")
    page.fill("Name of the field", "beta")
    page.fill("Value of the field", "yes")
    page.press("Evaluate")
    assert page.value("beta") == "yes"


def test_fields_become_json_and_back(walk, scenery):
    page = walk("viewer", f"/playground/?{ADA}")
    page.press("JSON")
    assert '"plan": "pro"' in page.value("Context as JSON")
    page.fill("Context as JSON", '{"userId": "7", "properties": {"plan": "free"}}')
    page.press("Evaluate")
    assert "plan is free, needs one of pro, enterprise" in row(page, "dark-theme")
    page.press("Fields")
    assert page.value("userId") == "7"


def test_enter_in_a_field_evaluates(walk, scenery):
    """A browser presses the first button of the form."""
    page = walk("viewer", "/playground/")
    form = page.form_of(page.field("userId"))
    first = next(each for each in page.page.select("button:not([type=button])") if page.form_of(each) is form)
    page.fill("appVersion", "4.5.1")
    page.fill("userId", "7")
    page.send(first)
    assert {"context.userId=7", "context.appVersion=4.5.1"} <= set(page.address.split("?")[1].split("&"))
    assert page.value("userId") == "7"


def test_a_context_of_64_kb_is_evaluated_and_filtered(walk, scenery):
    long = json.dumps({"userId": "42", "properties": {"plan": "pro", "note": "x" * 64_000}})
    page = walk("viewer", f"/playground/?{ADA}&as=json")
    page.fill("Context as JSON", long)
    page.press("Evaluate")
    assert re.search("kept=[0-9a-f]{64}", page.address)
    assert "userId 42 is in bucket 53" in row(page, "dark-theme")
    page.open(page.page.select_one("a.chip.unknown")["href"])
    assert count(page) == 1
    assert page.value("Context as JSON") == long


def test_a_part_of_a_matrix_is_left_out(walk, scenery):
    page = walk("viewer", "/playground/?environment=production&context.userId=42,7")
    page.press("Leave out userId 7")
    assert page.address == "/playground/?environment=production&context.userId=42"
    assert count(page) == 13


def test_two_environments_are_compared_and_swapped(walk, scenery):
    page = walk("viewer", f"/playground/?{ADA}")
    page.press("Compare with…")
    page.untick("production", within="Side 1")
    page.tick("development", within="Side 1")
    page.press("Compare")

    def heads():
        shown = [read_text(each) for each in page.page.select(".matrix thead tr:first-child th")]
        return [name for each in shown for name in ("development", "production") if name in each]

    assert heads() == ["development", "production"]
    assert count(page, ".matrix") == 1
    assert "Switched off in production" in page.text
    page.press("Swap")
    assert heads() == ["production", "development"]
    page.press("All 13")
    assert count(page, ".matrix") == 13


def test_what_user_42_got_yesterday_at_14_03_in_three_clicks(walk, scenery, monkeypatch):
    now, place = timezone.now(), ("checkout", "pay-later", "production")
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: now - timedelta(days=2))
        create_flag("checkout", NewFlag(name="pay-later"), caller=Caller.system())
        environments.enable_flag(*place, caller=Caller.system())
    environments.disable_flag(*place, caller=Caller.system())
    page = walk("viewer", "/projects/")
    page.press("Playground", within="Flags")
    page.fill("userId", "42")
    page.fill("Flags as of", (now - timedelta(days=1)).strftime("%Y-%m-%dT14:03:00"))
    page.press("Evaluate")
    assert "Flags as they were on" in page.text
    assert "14:03:00" in page.text
    assert "On" in row(page, "pay-later").split()
    assert re.search(r"at=20\d\d-\d\d-\d\dT14%3A03%3A00", page.address)
    page.press("Show now")
    assert "Off" in row(page, "pay-later").split()
    assert page.presses <= 3


def test_from_two_environments_to_a_user_and_why(walk, scenery):
    page = walk("viewer", "/playground/who-changes/")
    page.fill("Users", "200")
    page.press("Compare")
    assert "of 200 generated users see" in page.text
    page.press("All who change")
    page.press("Explain")
    assert page.address.startswith("/playground/flag/")
    assert "production" in page.text


@pytest.mark.parametrize("name", ["Dark", "Light"])
def test_a_chosen_theme_stays_until_the_systems_is(walk, scenery, name):
    page = walk("viewer", "/")
    page.press(name)
    assert page.page.html["data-theme"] == name.lower()
    page.open("/playground/")
    assert page.page.html["data-theme"] == name.lower()
    page.press("System")
    page.open("/playground/")
    assert not page.page.html.has_attr("data-theme")
