"""The pages that change the flags selected in a project's list: turn on or off, tag, mark as stale."""

import re

import pytest

from flagadmin.core.audit.models import AuditEvent
from projects.flags.bulk import selected_flags_page
from projects.models import Flag, FlagEnvironment, FlagTag
from tests.support.flags import make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text

BULK = "/projects/shop/features"
TWO = {"name": ["cart", "search"]}


@pytest.fixture
def flags(shop):
    return [make_flag("cart", type="kill-switch"), make_flag("search", stale=True)]


def on_in(environment: str) -> list[str]:
    rows = FlagEnvironment.objects.filter(environment=environment, enabled=True)
    return sorted(rows.values_list("flag__name", flat=True))


def turn(browser, on: str, environment: str = "production", **given):
    return browser.post(
        f"{BULK}/switch", {"environment": environment, "enabled": on, **TWO, **given}, follow=True
    )


def test_turning_on_says_what_changes_does_it_and_is_undone_together(browse, flags):
    switch_on(flags[1], "production")
    member = browse("member")

    page = page_text(turn(member, "on"))
    assert "Turn on 2 flags in production" in page
    assert "1 is already on and stays as it is." in page
    assert "cartOffOn with the default strategy, which is added" in page
    assert on_in("production") == ["search"]

    told = turn(member, "on", confirmed="yes")
    assert "Turned on flag cart in production." in page_text(told)
    assert on_in("production") == ["cart", "search"]
    assert AuditEvent.objects.filter(type="feature-environment-enabled", feature="cart").count() == 1

    undo = re.search(r'action="(/activity/\d+/revert)"', told.text)
    assert undo
    member.post(undo[1], {"do": "undo"})
    assert on_in("production") == ["search"]


def test_flags_are_turned_off_where_they_are_on(browse, flags):
    answer = turn(browse("member"), "off")
    assert "These 2 flags are already off in production." in page_text(answer)

    for flag in flags:
        switch_on(flag, "development")
    turn(browse("member"), "off", "development", confirmed="yes")
    assert on_in("development") == []

    assert turn(browse("member"), "on", "nosuch").status_code == 404


def test_who_may_not_change_flags_is_told_which_permission_is_missing(browse, flags):
    reader = browse("reader")
    answers = [
        turn(reader, "on", confirmed="yes"),
        reader.post(f"{BULK}/tags", {**TWO, "do": "add", "type": "simple", "value": "shop"}),
        reader.post(f"{BULK}/stale", {**TWO, "stale": "yes"}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert not on_in("production")
    assert Flag.objects.filter(stale=True).count() == 1


@for_each(
    "address", ["switch?environment=production&enabled=on", "tags", "stale", "archive", "revive", "delete"]
)
def test_selecting_nothing_is_told(browse, flags, address):
    answer = browse("member").post(f"{BULK}/{address}", {}, follow=True)
    assert re.search("Select an (active|archived) flag of this project first.", page_text(answer))


@pytest.mark.parametrize(
    ("address", "given", "title"),
    [
        ("switch?environment=production", {"enabled": "on"}, "Turn on 2 flags in production"),
        ("tags", {}, "Tag 2 flags"),
        ("archive", {}, "Archive 2 flags"),
        ("delete", {}, "Delete 2 flags"),
    ],
)
def test_the_page_that_asks_has_an_address_so_that_a_reload_submits_nothing(
    browse, flags, monkeypatch, address, given, title
):
    if address == "delete":
        Flag.objects.update(archived_at="2026-01-01T00:00Z")
    member, sent = browse("member"), {**TWO, **given, "next": "/projects/shop/?q=a"}

    answer = member.post(f"{BULK}/{address}", sent)
    assert answer.status_code == 302
    shown = member.get(answer["Location"])
    assert title in page_text(shown)
    assert "/projects/shop/?q=a" in shown.text

    monkeypatch.setattr(selected_flags_page, "MAX_ADDRESS", 10)
    assert title in page_text(member.post(f"{BULK}/{address}", sent))


def test_tags_are_added_and_removed(browse, flags):
    member, tag = browse("member"), {"type": "simple", "value": "shop"}

    assert "Tag 2 flags" in page_text(member.post(f"{BULK}/tags", TWO, follow=True))
    member.post(f"{BULK}/tags", {**TWO, **tag, "do": "add"})
    assert FlagTag.objects.filter(value="shop").count() == 2
    assert "Tags they have now: simple:shop" in page_text(member.post(f"{BULK}/tags", TWO, follow=True))
    member.post(f"{BULK}/tags", {**TWO, **tag, "do": "remove"})
    assert FlagTag.objects.filter(value="shop").count() == 0

    form = {**TWO, "do": "add", "type": "simple", "value": "x"}
    answer = member.post(f"{BULK}/tags", form)
    assert answer.status_code == 400
    assert 'value="x"' in answer.text


def test_flags_are_marked_as_stale_and_not(browse, flags):
    answer = browse("member").post(f"{BULK}/stale", {**TWO, "stale": "yes"}, follow=True)
    assert "Marked flag cart as stale." in page_text(answer)
    browse("member").post(f"{BULK}/stale", {**TWO, "stale": "no"})
    assert Flag.objects.filter(stale=True).count() == 0


def test_all_flags_of_a_filtered_list_are_selected_by_its_query(browse, flags):
    for number in range(60):
        make_flag(f"promo-{number}")
    query = "q=promo&in-production=off&sort=-name&page=2"
    page = browse("member").get(f"/projects/shop/?{query}").text
    assert "All 60 matching" in page

    shown = page_text(turn(browse("member"), "on", name=[], matching=query))
    assert "Turn on 60 flags in production" in shown

    browse("member").post(f"{BULK}/stale", {"matching": query, "stale": "yes"})
    assert Flag.objects.filter(stale=True, name__startswith="promo").count() == 60
    assert not Flag.objects.get(name="cart").stale
