"""The page that reverts a flag to a version, and the versions in the flag's history."""

import re
from html import unescape

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.flags.history import SHOWN
from projects.models import Flag
from projects.segments.actions import create_segment, delete_segment, update_segment
from projects.strategies import actions as strategies
from tests.support.flags import is_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
FLAG = "/projects/shop/features/cart/"
SYSTEM = Caller.system()


def hidden(page):
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]+)"', page.text))


def ticked(page):
    return re.findall(r'name="part" value="([^"]+)" checked', page.text)


def test_the_page_lists_what_changes_and_reverts(browse, created):
    browser = browse("member")
    page = browser.get(f"{FLAG}revert?event={created}")
    text = page_text(page)
    assert "after flagadmin created the flag" in text
    assert ticked(page) == ["environment:production", "details"]
    assert "Switchon → off" in text
    assert "DescriptionNew → none" in text

    sent = hidden(page) | {"part": ticked(page)}
    who = browser.post(f"/if-saved{FLAG}revert", sent, headers={"HX-Request": "true"})
    assert "10,000 of 10,000" in page_text(who)
    assert "on → off" in page_text(who)
    done = browser.post(f"{FLAG}revert", sent, follow=True)
    assert "Reverted cart to its state of" in page_text(done)
    assert not is_on()
    assert "restored the version of" in page_text(done)
    assert "production: switchon → off" in page_text(done)

    again = browser.get(f"{FLAG}revert?event={created}")
    assert "Nothing to revert" in page_text(again)


def test_a_part_is_left_out(browse, created):
    browser = browse("member")
    sent = hidden(browser.get(f"{FLAG}revert?event={created}")) | {"part": "details"}
    nobody = browser.post(f"/if-saved{FLAG}revert", sent, headers={"HX-Request": "true"})
    assert "Nobody changes." in page_text(nobody)
    browser.post(f"{FLAG}revert", sent)
    assert is_on()
    assert Flag.objects.get().description is None
    beside = browser.post(f"/if-saved{FLAG}revert", sent)
    assert (
        ticked(
            browser.get(
                re.search(r'href="(/projects/[^"]+revert[^"]+)"', beside.text)[1].replace("&amp;", "&")
            )
        )
        == []
    )


def test_dependencies_change_who_gets_it(browse, created):
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)
    dependencies.add_dependency("shop", "cart", {"feature": "parent"}, caller=SYSTEM)
    before = AuditEvent.objects.filter(feature="cart").order_by("-id")[1].pk
    browser = browse("member")
    page = browser.get(f"{FLAG}revert?event={before}")
    assert ticked(page) == ["dependencies"]
    sent = hidden(page) | {"part": "dependencies"}
    who = browser.post(f"/if-saved{FLAG}revert", sent, headers={"HX-Request": "true"})
    assert "off → on" in page_text(who)


def test_what_cannot_be_restored_is_not_offered(browse, created):
    segment = create_segment({"name": "beta", "constraints": []}, caller=SYSTEM).pk
    place = ("shop", "cart", "production")
    made = strategies.add_strategy(*place, {"name": "default", "segments": [segment]}, caller=SYSTEM)
    with_segment = AuditEvent.objects.latest("id").pk
    strategies.remove_strategy(*place, made["id"], caller=SYSTEM)
    delete_segment(segment, caller=SYSTEM)
    update_flag("shop", "cart", {"description": "Newer"}, caller=SYSTEM)

    page = browse("member").get(f"{FLAG}revert?event={with_segment}")
    assert "Segment beta has been deleted." in page_text(page)
    assert ticked(page) == ["details"]
    assert re.search(r'value="environment:production" disabled', page.text)


def test_what_somebody_else_changed_meanwhile_is_listed_first(browse, created):
    browser = browse("member")
    sent = hidden(browser.get(f"{FLAG}revert?event={created}")) | {"part": ["environment:production"]}
    environments.enable_flag("shop", "cart", "development", caller=SYSTEM)
    refused = browser.post(f"{FLAG}revert", sent)
    assert refused.status_code == 409
    assert "Nothing was saved." in page_text(refused)
    assert is_on()
    assert 'value="environment:development"' in refused.text
    assert browser.post(f"{FLAG}revert", sent | hidden(refused)).status_code == 302
    assert not is_on()


def test_who_may_change_nothing_may_not_see_it(browse, created):
    assert browse("reader").get(f"{FLAG}revert?event={created}").status_code == 403
    earlier = AuditEvent.objects.filter(feature="cart").order_by("-pk")[1]
    page = browse("reader").get(f"{FLAG}?version={earlier.pk}").text
    assert "Compare with now" in page
    assert "Revert to this version" not in page


@for_each("event", ["", "x", "0", "9" * 30])
def test_no_such_version(browse, created, event):
    assert browse("member").get(f"{FLAG}revert?event={event}").status_code == 400


def test_the_history_offers_each_version_but_the_present_one(browse, created):
    page = browse("member").get(FLAG).text
    listed = AuditEvent.objects.filter(feature="cart").order_by("-id").values_list("pk", flat=True)
    events = list(listed[:SHOWN])
    assert [int(event) for event in re.findall(r"\?version=(\d+)#history", page)] == events
    pages = {event: browse("member").get(f"{FLAG}?version={event}").text for event in events}
    offered = [event for event in events if f"cart/revert?event={event}" in pages[event]]
    assert offered == events[1:]
    for number in range(10):
        update_flag("shop", "cart", {"description": f"{number}"}, caller=SYSTEM)
    page = browse("member").get(FLAG).text
    for _ in range(10):
        if f"version={created}#" in page:
            break
        older = re.search(r'href="(\?before=\d+)#history" rel="next"', page)[1]
        page = browse("member").get(f"{FLAG}{older}").text
    assert older
    chosen = re.search(rf'href="(\?before=\d+&amp;version={created})#history"', page)[1]
    assert f"revert?event={created}" in browse("member").get(f"{FLAG}{unescape(chosen)}").text


def test_an_archived_flag_is_revived_first(browse, created):
    archive.archive_flags("shop", ["cart"], caller=SYSTEM)
    assert "version=" not in browse("member").get(FLAG).text
    assert browse("member").get(f"{FLAG}revert?event={created}").status_code == 404


def test_segments_that_were_something_else_are_named(browse, created):
    """The flag may still not be what it was: its segments are not reverted."""
    eu, us = (create_segment({"name": name, "constraints": []}, caller=SYSTEM) for name in ("eu", "us"))
    strategy = {"name": "default", "segments": [eu.pk, us.pk]}
    strategies.add_strategy("shop", "cart", "production", strategy, caller=SYSTEM)
    event = AuditEvent.objects.latest("id").pk
    conditions = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    update_segment(eu.pk, {"constraints": conditions}, caller=SYSTEM)
    update_segment(us.pk, {"constraints": conditions}, caller=SYSTEM)
    update_segment(us.pk, {"constraints": []}, caller=SYSTEM)

    text = page_text(browse("member").get(f"{FLAG}revert?event={event}"))
    assert "Segment eu had other conditions then. A revert leaves segments as they are." in text
    assert "Nothing to revert" in text

    strategies.add_strategy("shop", "cart", "production", {"name": "default"}, caller=SYSTEM)
    later = AuditEvent.objects.latest("id").pk
    assert "had other conditions" not in page_text(browse("member").get(f"{FLAG}revert?event={later}"))
