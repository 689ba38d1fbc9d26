"""Connecting a first SDK."""

import re

from groups.login.links import create_setup_link
from tests.support.cast import client
from tests.support.walks import read_text

PASSWORD = "a long enough passphrase"


SDK = "unleash-node-sdk:6.12.1"


def ask(secret):
    return client(secret).get("/api/client/features", headers={"Unleash-Sdk": SDK}).status_code


def register(secret):
    body = {"appName": "my-app", "instanceId": "i-1", "sdkVersion": SDK, "strategies": [], "interval": 60000}
    started = {"started": "2026-11-21T03:26:33.451Z"}
    assert client(secret).post("/api/client/register", body | started, format="json").status_code == 202


def test_a_first_sdk_is_connected_with_three_clicks(walk, no_earlier_refusals):
    page = walk(None, re.sub(r"^https?://[^/]+", "", create_setup_link()))
    page.fill("User name", "ada")
    page.fill("Password", PASSWORD)
    page.press("Create account and log in")
    page.press("Connect an SDK")
    page.press("Create token")
    assert page.presses == 3
    secret = read_text(page.page.select_one("#token"))
    assert f'Authorization: "{secret}"' in page.page.select_one("#program").get_text()
    assert "Waiting for the first request…" in read_text(page.part("Connection"))
    assert ask(secret) == 200
    register(secret)
    page.press("Check again")
    assert "Connected: my-app" in read_text(page.part("Connection"))
    assert "unleash-node-sdk 6.12.1" in read_text(page.part("Connection"))
    page.press("flagadmin")
    assert "1 is done." in page.text
    assert "Create a flag" in page.names()


def test_pages_lead_to_connecting(walk, scenery):
    page = walk("admin", "/projects/checkout/features/gift-cards/")
    page.press("Use it in code")
    assert "gift-cards" in page.page.select_one("#program").get_text()
    for address in ("/projects/checkout/applications/", "/applications/"):
        page.open(address)
        page.press("Connect an SDK")
        assert page.heading == "Connect an SDK"
