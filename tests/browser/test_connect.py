"""The journey "connect a first SDK": from an empty installation to a page that says it is connected."""

import re

import pytest
from playwright.sync_api import expect

from groups.login.links import create_setup_link
from tests.browser.journeys import Clicks
from tests.support.cast import client

PASSWORD = "a long enough passphrase"
SDK = "unleash-node-sdk:6.12.1"

pytestmark = pytest.mark.usefixtures("no_earlier_refusals")


def ask(secret):
    return client(secret).get("/api/client/features", headers={"Unleash-Sdk": SDK}).status_code


def register(secret):
    body = {"appName": "my-app", "instanceId": "i-1", "sdkVersion": SDK, "strategies": [], "interval": 60000}
    started = {"started": "2026-11-21T03:26:33.451Z"}
    assert client(secret).post("/api/client/register", body | started).status_code == 202


def test_a_first_sdk_is_connected_with_four_clicks(visit, transactional_db, check_accessible):
    page = visit(None, create_setup_link())
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("button", name="Create account and log in"))
    clicks.on(page.get_by_role("link", name="Connect an SDK"))
    clicks.on(page.get_by_role("button", name="Create token"))
    program = page.locator("#program")
    secret = page.locator("#token").inner_text()
    expect(program).to_contain_text(f'Authorization: "{secret}"')
    clicks.on(page.get_by_role("button", name="Copy program"))
    is_copied = "async (text) => await navigator.clipboard.readText() === text"
    page.wait_for_function(is_copied, arg=program.inner_text())
    check_accessible(page)
    assert clicks.count <= 4

    live = page.get_by_role("status", name="Connection")
    expect(live.get_by_role("heading")).to_have_text("Waiting for the first request…")
    assert ask(secret) == 200
    register(secret)
    expect(live.get_by_role("heading")).to_have_text("Connected: my-app")
    expect(live).to_contain_text("unleash-node-sdk 6.12.1")
    check_accessible(page)


def test_a_hidden_page_does_not_ask(visit, scenery, watch):
    page = visit("admin", "/projects/checkout/connect/")
    with page.expect_request(re.compile("/connect/live")):
        pass
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.install()
    before = len(watch.requests)
    page.clock.fast_forward(60_000)
    page.wait_for_load_state("networkidle")
    assert len(watch.requests) - before <= 1  # the one that was on its way


def test_the_token_is_read_from_the_environment_and_another_flag_chosen_without_a_button(visit, scenery):
    page = visit("admin", "/projects/checkout/connect/?language=python")
    expect(page.locator("#program")).to_be_visible()
    page.get_by_label("Read the token from UNLEASH_TOKEN instead").check()
    expect(page.locator("#program-without-token")).to_contain_text('os.environ["UNLEASH_TOKEN"]')
    expect(page.locator("#program")).to_be_hidden()

    page.get_by_label("Flag to check").select_option("gift-cards")
    expect(page.locator("#program-without-token")).to_contain_text('is_enabled("gift-cards"')
    expect(page.get_by_role("link", name="Python", exact=True)).to_have_attribute("aria-current", "page")
