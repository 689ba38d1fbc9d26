"""The navigation: six sections, each page marked in one of them, and every page within reach of links from Home."""

import json
import re
from collections import Counter
from urllib.parse import urljoin, urlsplit

from django.urls import Resolver404, resolve

from flagadmin.console.navigation import find_place, list_sections
from integrations.mcp.api import TOOLS
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.cast import client
from tests.support.paths import ROOT
from tests.support.walks import read_text

MAIN = ["Home", "Flags", "What happened", "Requests", "Access", "Settings"]
BESIDE = ("/account/", "/search/", "/nowhere/")  # in no section: reached from the bar, or not there
VISITS = 2  # pages of one route that a walk opens
# What leads to these pages is there in some states only, such as for an account with a second factor.
IN_OTHER_STATES = {
    "account-confirm", "environment-approvals", "environment-revert", "flag-order", "flag-why", "flags-delete", "person-unlink",
    "person-two-step-remove", "role-delete", "source-history", "two-step-codes", "two-step-passkey-new",
}  # fmt: skip


def test_everyone_has_the_same_six_sections_and_the_current_one_is_marked(walk, scenery):
    for user in ("admin", "viewer"):
        page = walk(user, "/")
        for label in MAIN:
            page.press(label, within="Main")
            assert [read_text(each) for each in page.part("Main").select("a")] == MAIN
            assert [read_text(each) for each in page.page.select("#nav [aria-current]")] == [label]


def test_every_page_belongs_to_a_section(scenery):
    without = {path for path in map(path_of, PAGES) if find_place(path)[0] is None}
    assert {path for path in without if not path.startswith(BESIDE)} == set()
    assert label_of("/projects/checkout/change-requests/3/") == "Requests"
    assert label_of("/projects/checkout/activity/") == "What happened"
    assert label_of("/projects/checkout/features/cart/") == "Flags"
    assert label_of("/import/") == label_of("/imports/") == label_of("/admin/projects/flag/") == "Settings"


def label_of(path):
    section, _, _ = find_place(path)
    return section.label


def path_of(address):
    return urlsplit(filled(address)).path


def test_every_page_is_reached_by_links_from_home(walk, scenery):
    page, linked, opened, waiting = walk("admin", "/"), {"start"}, Counter(), ["/"]
    seen = set(waiting)
    while waiting:
        page.open(waiting.pop(0))
        for link in page.page.select("a[href], form[action], [formaction]"):
            is_link = link.name == "a"
            target = urljoin(
                page.address, str(link.get("href") or link.get("formaction") or link.get("action"))
            )
            parts = urlsplit(target)
            if parts.netloc or parts.path in seen or "csv" in parts.query:
                continue
            seen.add(parts.path)
            try:
                name = resolve(parts.path).view_name
            except Resolver404:
                continue
            linked.add(name)
            if name and opened[name] < VISITS and is_link and not name.startswith("admin:"):
                opened[name] += 1
                waiting.append(target)
    listed = {resolve(path_of(address)).view_name for address in PAGES if meant_status(address) == 200}
    missing = {name for name in listed - linked if not name.startswith("admin:")}
    assert missing <= IN_OTHER_STATES
    for section in list_sections():
        assert {page.url for page in section.pages} <= seen


def test_an_agent_gets_a_token_in_three_clicks(walk, scenery):
    page = walk("admin", "/")
    page.press("Access", within="Main")
    page.press("Agents")
    page.press("Create token")
    assert page.presses == 3

    token = page.page.select_one("#secret").get_text()
    assert page.page.select_one("#client-1").get_text().count(f"Bearer {token}") == 1
    documented = re.search(r"```json\n(.*?)```", (ROOT / "docs/agents.md").read_text(), re.DOTALL)[1]
    shown = page.page.select_one("#client-1").get_text().replace(token, "user:…")
    assert json.loads(shown.replace("http://testserver", "https://flags.example.org")) == json.loads(
        documented
    )
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = client(token).post("/mcp", message, format="json", headers={"Authorization": f"Bearer {token}"})
    assert [tool["name"] for tool in answer.json()["result"]["tools"]] == list(TOOLS)
    page.open("/access/agents/")
    assert page.rows() == []
    assert read_text(page.part("Tokens").select_one("tbody")).startswith("Agent You")
    assert token not in page.text
