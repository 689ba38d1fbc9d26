"""/projects/ID/: the flags, their toggles, archiving and reviving from the list."""

import pytest
from django.utils import timezone

from projects.models import (
    Application,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagTag,
    FlagUsage,
    TagType,
)
from projects.projects.flag_list_page import count_flags_of_page
from tests.support.flags import depend, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text


def names(browser, query=""):
    return [line[0] for line in csv_rows(browser.get(f"/projects/shop/?format=csv&{query}"))][1:]


def archived():
    return sorted(Flag.objects.archived().values_list("name", flat=True))


def used(flag, application="portal-web"):
    row, _ = Application.objects.get_or_create(name=application, defaults={"created_at": timezone.now()})
    FlagUsage.objects.create(
        application_id=row.pk, flag_id=flag.pk, environment="production", last_used_at=timezone.now()
    )


@pytest.fixture
def flags(shop):
    return [make_flag("cart", type="kill-switch"), make_flag("search", stale=True, description="Finds goods")]


def test_active_and_archived_flags_are_listed_apart(browse, flags):
    make_flag("old", archived=True)

    assert names(browse("reader")) == ["cart", "search"]
    assert names(browse("reader"), "show=archived") == ["old"]
    assert "All 2MineRolling outChanged todayDiffersCan goArchived 1" in page_text(
        browse("reader").get("/projects/shop/")
    )


@for_each(
    ("query", "expected"),
    [
        ("q=GOODS", ["search"]),
        ("type=kill-switch", ["cart"]),
        ("state=stale", ["search"]),
        ("state=active", ["cart"]),
        ("tag=simple:shop", ["cart"]),
        ("sort=-name", ["search", "cart"]),
    ],
)
def test_flags_are_searched_filtered_and_sorted(browse, flags, query, expected):
    FlagTag.objects.create(flag=flags[0], tag_type=TagType.objects.get(pk="simple"), value="shop")

    assert names(browse("reader"), query) == expected


def test_archived_flags_say_by_whom_and_when_they_were_evaluated_last(browse, flags):
    browse("member").post("/projects/shop/features/archive", {"name": "cart", "known": "yes"})
    FlagLastSeen.objects.create(flag=flags[0], environment="production", seen_at=timezone.now())

    page = page_text(browse("reader").get("/projects/shop/?show=archived&sort=-seen"))
    assert "member just now" in page
    _, (name, _, _, by, seen) = csv_rows(browse("reader").get("/projects/shop/?show=archived&format=csv"))
    assert (name, by) == ("cart", "member")
    assert seen


def test_production_is_switched_after_a_page_that_says_what_changes(browse, flags):
    used(flags[0])
    depend(flags[1], flags[0])
    given = {"environment": "production", "enabled": "on", "next": "/projects/shop/"}

    answer = browse("member").post("/projects/shop/features/cart/switch", given, follow=True)
    page = page_text(answer)

    assert answer.request["REQUEST_METHOD"] == "GET"
    assert 'name="next" value="/projects/shop/"' in answer.text
    assert "Turn on cart in production" in page
    assert "On for everyone." in page
    assert "portal-web evaluated it here just now." in page
    assert "Flags that depend on it: search." in page
    assert not FlagEnvironment.objects.filter(flag=flags[0], enabled=True).exists()


def test_what_somebody_else_switched_meanwhile_is_told_without_undo(browse, flags):
    switch_on(flags[0])

    told = browse("member").post(
        "/projects/shop/features/cart/switch", {"environment": "development", "enabled": "on"}, follow=True
    )

    assert "cart is already on in development." in page_text(told)
    assert "Undo" not in told.text


@for_each(
    ("query", "status"), [("", 400), ("?environment=nosuch", 404), ("?environment=staging&enabled=on", 404)]
)
def test_an_environment_that_is_not_there_is_not_switched(browse, flags, query, status):
    assert browse("member").get(f"/projects/shop/features/cart/switch{query}").status_code == status


def test_who_may_not_switch_is_not_offered_it_and_is_told_why_also_by_script(browse, flags):
    reader = browse("reader")

    assert "/switch" not in reader.get("/projects/shop/").text
    refused = reader.post(
        "/projects/shop/features/cart/switch", {"environment": "production", "enabled": "on"}, follow=True
    )
    assert refused.status_code == 403
    assert 'You need the "Switch flags" permission in Shop (production).' in page_text(refused)

    answer = reader.post(
        "/projects/shop/features/cart/switch",
        {"environment": "development", "enabled": "on"},
        headers={"HX-Request": "true"},
    )

    assert answer["HX-Redirect"] == "/projects/shop/features/cart/"


def test_flags_are_archived_after_a_page_that_says_who_uses_them(browse, flags):
    form = {"name": ["cart", "search"]}

    question = page_text(browse("member").post("/projects/shop/features/archive", form, follow=True))
    assert "No application has evaluated them." in question
    assert archived() == []

    answer = browse("member").post("/projects/shop/features/archive", {**form, "known": "yes"})
    assert answer["Location"] == "/projects/shop/"
    assert archived() == ["cart", "search"]


def test_a_parent_is_not_archived_from_under_its_child(browse, flags):
    depend(flags[1], flags[0])

    page = browse("member").get("/projects/shop/features/archive?name=cart")
    refused = browse("member").post("/projects/shop/features/archive", {"name": "cart", "known": "yes"})

    assert "search depends on cart." in page_text(page)
    assert "search would lose what it depends on" in page_text(refused)
    assert archived() == []


def test_archived_flags_are_deleted_once_that_is_known(browse, flags):
    make_flag("old", archived=True)

    asked = browse("member").post("/projects/shop/features/delete", {"name": ["old", "cart"]}, follow=True)

    assert "Delete flag old" in page_text(asked)
    assert Flag.objects.filter(name="old").exists()
    answer = browse("member").post(
        "/projects/shop/features/delete", {"name": ["old", "cart"], "known": "yes"}
    )
    assert answer["Location"] == "/projects/shop/?show=archived"
    assert sorted(Flag.objects.values_list("name", flat=True)) == ["cart", "search"]


@for_each("verb", ["archive", "delete"])
def test_who_may_not_archive_or_delete_is_told_why(browse, flags, verb):
    make_flag("old", archived=True)
    reader = browse("reader")

    assert "Archive selected" not in reader.get("/projects/shop/").text
    given = {"name": ["cart", "old"], "known": "yes"}
    assert reader.post(f"/projects/shop/features/{verb}", given).status_code == 403
    assert archived() == ["old"]


def test_a_project_is_exported_as_a_file(browse, flags):
    answer = browse("reader").get("/projects/shop/export?environment=production")

    assert answer["Content-Disposition"] == 'attachment; filename="shop-production.json"'
    assert [flag["name"] for flag in answer.json()["features"]] == ["cart", "search"]
    assert browse("outsider").get("/projects/shop/export?environment=production").status_code == 404


@for_each(
    ("environments", "length", "flags"), [(2, 10, 50), (10, 100, 15), (30, 10, 8), (30, 100, 5), (400, 10, 1)]
)
def test_a_page_has_fewer_flags_the_more_environments_there_are(environments, length, flags):
    assert count_flags_of_page(["e" * length] * environments) == flags
