"""Undo in messages, Revert in lists of changes, and the page that says first what a revert does."""

import re
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments import actions as environments
from projects.models import (
    Flag,
    FlagEnvironment,
    Project,
    ProjectEnvironment,
    Segment,
    Strategy,
    StrategyType,
)
from projects.segments.actions import create_segment
from projects.strategies.actions import update_strategy
from releases.models import ChangeRequest
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
SYSTEM = Caller.system()
FLAG = "/projects/shop/features/cart/"


@pytest.fixture
def cart(shop: Project) -> Flag:
    flag = create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)
    create_flag("shop", NewFlag(name="gift"), caller=SYSTEM)
    environments.enable_flag("shop", "cart", "production", caller=SYSTEM)
    return flag


def undo(browser: Any, page: Any) -> Any:
    """Presses the Undo button of the page's message."""
    action = re.search(r'action="(/activity/\d+/revert)"', page.text)
    assert action, page_text(page)[:800]
    return browser.post(action[1], {"do": "undo", "next": "/projects/shop/"}, follow=True)


def stored() -> Any:
    flags = Flag.objects.order_by("name").values_list(
        "name", "stale", "archived_at", "impression_data", "description"
    )
    places = FlagEnvironment.objects.order_by("flag", "environment").exclude(enabled=False, variants=[])
    strategies = Strategy.objects.order_by("pk").values_list("pk", "parameters", "title", "sort_order")
    return (
        list(flags),
        list(places.values_list("flag", "environment", "enabled", "variants")),
        list(strategies),
    )


POSTS = {
    "switch": (f"{FLAG}switch", {"environment": "production", "enabled": "off", "confirmed": "yes"}),
    "switch in development": (f"{FLAG}switch", {"environment": "development", "enabled": "on"}),
    "stale": (f"{FLAG}stale", {"stale": "yes"}),
    "impression data": (f"{FLAG}impression-data", {"impression_data": "on"}),
    "archive": ("/projects/shop/features/archive", {"name": "cart", "known": ""}),
    "parent": (f"{FLAG}parents", {"do": "add", "feature": "gift", "state": "on"}),
    "bulk switch": ("/projects/shop/features/switch", {"name": ["cart", "gift"], "environment": "development",
                                                       "enabled": "on", "confirmed": "yes"}),
    "bulk stale": ("/projects/shop/features/stale", {"name": ["cart", "gift"], "stale": "yes"}),
    "bulk tag": ("/projects/shop/features/tags", {"name": ["cart", "gift"], "do": "add", "type": "simple",
                                                  "value": "shop"}),
    "details": (f"{FLAG}edit", {"description": "Of goods", "type": "release"}),
}  # fmt: skip


@pytest.mark.parametrize(("address", "sent"), POSTS.values(), ids=POSTS)
def test_what_was_done_has_an_undo(browse, cart, address, sent):
    member, before = browse("member"), stored()
    done = member.post(address, sent, follow=True)
    changed = stored(), Flag.objects.filter(tags__isnull=False).exists(), cart.parents.exists()
    assert changed != (before, False, False)

    undone = undo(member, done)

    assert "Undone: " in page_text(undone)
    assert (stored(), Flag.objects.filter(tags__isnull=False).exists(), cart.parents.exists()) == (
        before,
        False,
        False,
    )
    undo(member, undone)  # which can be undone as well
    assert (
        stored(),
        Flag.objects.filter(tags__isnull=False).exists(),
        cart.parents.exists(),
    ) == changed or address.endswith("archive")


def test_a_switch_by_htmx_has_an_undo(browse, cart):
    done = browse("member").post(
        f"{FLAG}switch",
        {"environment": "development", "enabled": "on"},
        headers={"HX-Request": "true"},
        follow=True,
    )
    assert re.search(r'action="/activity/\d+/revert"', done.text)


def test_what_cannot_be_undone_has_no_button(browse, cart):
    done = browse("member").post(
        "/projects/shop/features/new", {"name": "new", "type": "release"}, follow=True
    )
    assert "Created flag new" in page_text(done)
    assert "/revert" not in done.text.partition('id="messages"')[2].partition("<section")[0]
    favorite = browse("member").post(f"{FLAG}favorite", {"favorite": "on"}, follow=True)
    assert "one of your favorites" in page_text(favorite)
    assert not re.search(r'action="/activity/\d+/revert"', favorite.text)


def test_undo_does_not_take_back_what_somebody_else_did_since(browse, cart):
    member = browse("member")
    done = member.post(
        f"{FLAG}switch", {"environment": "production", "enabled": "off", "confirmed": "yes"}, follow=True
    )
    environments.enable_flag("shop", "cart", "production", caller=SYSTEM)
    member.post(f"{FLAG}stale", {"stale": "yes"})
    undone = undo(member, done)
    assert "Undone" in page_text(undone)  # it is on again already, and stale stays
    assert Flag.objects.get(name="cart").stale

    done = browse("member").post(f"{FLAG}edit", {"description": "One", "type": "release"}, follow=True)
    browse("owner").post(f"{FLAG}edit", {"description": "Two", "type": "release"})
    refused = undo(member, done)
    assert "Nothing was undone. Description of cart has been changed since, by owner on" in page_text(refused)
    assert Flag.objects.get(name="cart").description == "Two"


def test_a_segment_and_a_strategy_type_have_an_undo(browse, cart):
    admin = browse("admin")
    segment = create_segment({"name": "vip", "constraints": []}, caller=SYSTEM)
    done = admin.post(f"/segments/{segment.pk}/", {"name": "VIPs", "do": "save"}, follow=True)
    assert Segment.objects.get().name == "VIPs"
    undo(admin, done)
    assert Segment.objects.get().name == "vip"
    done = admin.post("/strategy-types/remoteAddress/deprecate", follow=True)
    assert StrategyType.objects.get(pk="remoteAddress").deprecated
    undo(admin, done)
    assert not StrategyType.objects.get(pk="remoteAddress").deprecated


def test_activity_leads_to_what_a_revert_does_and_does_it(browse, cart):
    member = browse("member")
    member.post(f"{FLAG}switch", {"environment": "production", "enabled": "off", "confirmed": "yes"})
    member.post(f"{FLAG}stale", {"stale": "yes"})
    activity = member.get("/activity/").text
    links = [
        link.replace("&amp;", "&") for link in re.findall(r'href="(/activity/\d+/revert[^"]*)"', activity)
    ]
    assert len(links) == 2 + 2  # nothing for what was created

    page = member.get(links[1])
    text = page_text(page)
    assert "member turned cart off in production" in text
    assert "Switchoff → on" in text
    who = member.post(f"/if-saved{links[1].partition('?')[0]}", {}, headers={"HX-Request": "true"})
    assert "off → on" in page_text(who)
    assert "10,000 of 10,000" in page_text(who)

    done = member.post(links[1].partition("?")[0], {"next": "/activity/"}, follow=True)
    assert "Reverted: turned cart off in production." in page_text(done)
    assert "reverted a change of cart" in page_text(done)
    assert FlagEnvironment.objects.get(flag=cart, environment="production").enabled
    assert Flag.objects.get(name="cart").stale
    assert "it is as it was before this change" in page_text(member.get(links[1]))


def test_who_may_not_has_no_button_and_is_told_why(browse, cart):
    browse("member").post(f"{FLAG}stale", {"stale": "yes"})
    event = AuditEvent.objects.latest("id").pk
    reader = browse("reader")
    assert f"/activity/{event}/revert" not in reader.get("/activity/").text
    assert f"/activity/{event}/revert" not in reader.get(FLAG).text
    page = reader.get(f"/activity/{event}/revert")
    assert "You need" in page_text(page)
    assert re.search(r'<button class="btn main" disabled', page.text)
    assert reader.post(f"/activity/{event}/revert").status_code == 403
    assert browse("outsider").get(f"/activity/{event}/revert").status_code == 404


def test_a_change_that_later_ones_build_on_leads_to_the_version_before_it(browse, cart):
    member = browse("member")
    for text in ("One", "Two"):
        member.post(f"{FLAG}edit", {"description": text, "type": "release"})
    first, _ = AuditEvent.objects.filter(type="feature-metadata-updated").order_by("id")
    page = member.get(f"/activity/{first.pk}/revert")
    assert "Description of cart has been changed since" in page_text(page)
    version = re.search(r'href="(/projects/shop/features/cart/revert\?event=\d+)"', page.text)
    assert version
    assert "DescriptionTwo → none" in page_text(member.get(version[1]))


def test_the_history_of_a_flag_reverts_what_a_bulk_change_did_to_it(browse, cart):
    member = browse("member")
    member.post("/projects/shop/features/stale", {"name": ["cart", "gift"], "stale": "yes"})
    link = re.search(
        r'href="(/activity/\d+/revert\?flag=cart[^"]*)"', member.get(FLAG).text.partition('id="history"')[2]
    )
    assert link
    page = member.get(link[1].replace("&amp;", "&"))
    assert "gift" not in page.text.partition('id="confirm"')[2].partition("</form>")[0]
    member.post(link[1].partition("?")[0], {"flag": "cart", "next": FLAG})
    assert list(Flag.objects.filter(stale=True).values_list("name", flat=True)) == ["gift"]


def test_the_page_of_an_archiving_says_what_applications_get_again(browse, cart):
    member = browse("member")
    member.post("/projects/shop/features/archive", {"name": "cart", "known": ""})
    event = AuditEvent.objects.latest("id").pk
    page = page_text(member.get(f"/activity/{event}/revert"))
    assert "Revived." in page
    assert "Switchoff → on" in page
    who = member.post(f"/if-saved/activity/{event}/revert", {}, headers={"HX-Request": "true"})
    assert "Applications get the flag again" in page_text(who)


def test_reverts_offer_review_at_once_where_changes_need_it(browse, cart):
    created = AuditEvent.objects.filter(feature="cart").earliest("pk").pk
    [strategy] = Strategy.objects.filter(flag=cart, environment="production")
    parameters = {"rollout": "10", "stickiness": "default", "groupId": "cart"}
    update_strategy("shop", "cart", "production", str(strategy.pk), {"parameters": parameters}, caller=SYSTEM)
    rollout = AuditEvent.objects.filter(feature="cart").latest("pk").pk
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    member = browse("member")
    for address in (f"/activity/{rollout}/revert?flag=cart", f"{FLAG}revert?event={created}"):
        assert "Send for review" in page_text(member.get(address))
    sent = member.post(f"/activity/{rollout}/revert", {"flag": "cart", "send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert (sent.url, request.state) == (f"/projects/shop/change-requests/{request.pk}/", "In review")
    ProjectEnvironment.objects.update(required_approvals=None)
    assert "Send for review" not in page_text(member.get(f"{FLAG}revert?event={created}"))
