"""/activity/?change=ID: all events of one change, and whom it changed."""

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.archive import actions as archive
from projects.flags.copies import move
from projects.flags.environments import actions as environments
from projects.history.change_links import make_comparison_url
from projects.models import Project
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.playground import live_flag

SYSTEM = Caller.system()
ON = "/api/admin/projects/shop/bulk_features/environments/production/on"


def last_event() -> AuditEvent:
    return AuditEvent.objects.latest("pk")


def page_of(browser: Any, event: AuditEvent) -> str:
    return unescape(browser.get(f"/activity/?change={event.pk}").text)


def loaded(text: str) -> list[str]:
    return re.findall(r'hx-get="([^"]*/versions[^"]*)"', text)


@pytest.fixture
def turned_on(shop: Project, api: Any) -> AuditEvent:
    """Two flags turned on at once."""
    for name in ("cart", "search"):
        live_flag(name, enabled=False)
    assert api["member"].post(ON, {"features": ["cart", "search"]}).status_code == 200
    return last_event()


def test_each_flag_says_whom_the_change_changed(browse: Any, turned_on: AuditEvent) -> None:
    browser = browse("reader")
    text = page_of(browser, turned_on)
    assert re.search(r"<b>member</b>\s+turned 2 flags on in production", text)
    urls = loaded(text)
    assert sorted(url.split("/")[4] for url in urls) == ["cart", "search"]
    for url in urls:
        part = browser.get(url)
        assert f'id="who-{url.partition("event=")[2]}"' in part.text
        assert f'id="who-{url.partition("event=")[2]}"' in text
        assert "production: 10,000 of 10,000 generated users off → on" in page_text(part)


def test_the_whole_change_is_compared(browse: Any, turned_on: AuditEvent) -> None:
    browser = browse("reader")
    [url] = re.findall(r'href="(/playground/who-changes/[^"]*)"', page_of(browser, turned_on))
    query = parse_qs(urlsplit(url).query)
    assert (query["project"], query["from"], query["to"]) == (["shop"], ["production"], ["production"])
    assert query["from-at"] < query["to-at"]
    assert "flag" not in query

    environments.disable_flag("shop", "cart", "production", caller=SYSTEM)
    alone = make_comparison_url(AuditEvent.objects.filter(pk=last_event().pk))
    assert "flag=cart" in alone


def test_flags_that_are_gone_say_nothing(browse: Any, turned_on: AuditEvent) -> None:
    make_project("docs")
    archive.archive_flags("shop", ["cart"], caller=SYSTEM)
    archived = last_event()
    move.move_flag("shop", "search", "docs", caller=SYSTEM)
    browser = browse("viewer")
    assert loaded(page_of(browser, turned_on)) == []
    assert loaded(page_of(browser, archived)) == []


def test_a_change_of_something_else_has_no_comparison(browse: Any, shop: Project, api: Any) -> None:
    assert api["editor"].post("/api/admin/segments", {"name": "eu", "constraints": []}).status_code == 201
    text = page_of(browse("viewer"), last_event())
    assert "Who was affected" not in text
    assert loaded(text) == []


def test_changes_are_linked_from_the_activity(browse: Any, turned_on: AuditEvent) -> None:
    text = browse("reader").get("/activity/").text
    assert f'<a class="when" href="/activity/?change={turned_on.pk}">' in text


def test_nobody_sees_the_changes_of_projects_that_they_may_not_read(
    browse: Any, turned_on: AuditEvent
) -> None:
    assert "cart" not in page_of(browse("outsider"), turned_on)
