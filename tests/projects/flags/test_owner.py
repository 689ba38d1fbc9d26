"""The owner of a flag: a person or a group."""

import pytest
from django.db import connection

from groups.models import Group, GroupMembership
from projects.models import Flag
from tests.support.cast import make_user
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.records import events, refused

FLAGS = "/api/admin/projects/shop/features"
FORM = "/projects/shop/features/cart/edit"


@pytest.fixture
def crew(people):
    group = Group.objects.create(name="Crew")
    GroupMembership.objects.create(group=group, user=people["member"])
    return group


@pytest.fixture
def cart(people):
    return make_flag("cart")


def found(api, query, caller="viewer"):
    answer = api[caller].get(f"/api/admin/search/features?{query}")
    assert answer.status_code == 200, answer.json()
    return sorted(flag["name"] for flag in answer.json()["features"])


def fields(browser, **changes):
    return browser.get(FORM).context["form"].initial | {"impression_data": "", "stale": ""} | changes


@for_each("kind", ["user", "group"])
def test_a_flag_gets_an_owner_and_loses_it(api, people, crew, cart, kind):
    holder = crew if kind == "group" else people["member"]
    owner = {"kind": kind, "id": holder.pk, "name": str(holder)}
    updated = api["owner"].put(f"{FLAGS}/cart", {"owner": {"kind": kind, "id": holder.pk}}).json()

    assert updated["owner"] == owner
    assert api["viewer"].get(f"{FLAGS}/cart").json()["owner"] == owner
    [event] = events("feature-metadata-updated")
    assert (event.before["owner"], event.after["owner"]) == (None, owner)
    cleared = api["owner"].patch(f"{FLAGS}/cart", [{"op": "replace", "path": "/owner", "value": None}])
    assert (cleared.status_code, "owner" in cleared.json()) == (200, False)
    assert "owner" not in api["viewer"].get(f"{FLAGS}/cart").json()


def test_the_owner_stays_with_other_changes_copies_and_in_another_project(api, people, crew, cart):
    Flag.objects.update(owner_group=crew)
    assert api["owner"].put(f"{FLAGS}/cart", {"type": "experiment"}).json()["owner"]["name"] == "Crew"

    assert api["owner"].post(f"{FLAGS}/cart/clone", {"name": "copy"}).json()["owner"]["name"] == "Crew"
    assert api["admin"].post(f"{FLAGS}/cart/changeProject", {"newProjectId": "default"}).status_code == 200
    assert Flag.objects.get(name="cart").owner_group == crew


@for_each("who", ["service", 10**9])
def test_an_unknown_owner_is_refused(api, people, cart, who):
    number = people[who].pk if isinstance(who, str) else who
    answer = api["owner"].put(f"{FLAGS}/cart", {"owner": {"kind": "user", "id": number}})
    [problem] = refused(answer, 400, "ValidationError")["details"]
    assert problem == {"path": "owner", "message": f"Person with id {number} not found."} | {
        key: problem[key] for key in problem.keys() - {"path", "message"}
    }


def test_a_revert_brings_the_owner_back_unless_it_is_gone(api, people, crew, cart):
    past = make_user("past")
    for owner in (past, people["member"]):
        api["owner"].put(f"{FLAGS}/cart", {"owner": {"kind": "user", "id": owner.pk}})
    first, _ = events("feature-metadata-updated")
    revert = f"{FLAGS}/cart/revert"
    assert api["owner"].post(revert, {"event": first.pk}).status_code == 200
    assert Flag.objects.get().owner_user == past

    answer = api["owner"].post(f"/api/admin/events/{first.pk}/revert", {})  # the change alone
    assert (answer.status_code, Flag.objects.get().owner_user) == (200, None), answer.json()
    past.delete()
    assert api["owner"].post(revert, {"event": first.pk}).status_code == 200
    assert Flag.objects.get().owner_user is None


def test_search_and_filters_know_the_owner(api, browse, people, crew):
    for name in ("of-crew", "of-member", "of-none", "of-owner"):
        make_flag(name)
    Flag.objects.filter(name="of-crew").update(owner_group=crew)
    Flag.objects.filter(name="of-member").update(owner_user=people["member"], created_by=people["owner"])
    Flag.objects.filter(name="of-owner").update(created_by=people["owner"])

    assert found(api, f"owner=IS:group:{crew.pk}") == ["of-crew"]
    assert found(api, f"owner=IS_ANY_OF:user:{people['member'].pk}, none") == [
        "of-member",
        "of-none",
        "of-owner",
    ]
    assert found(api, "query=crew") == ["of-crew"]
    assert api["viewer"].get("/api/admin/search/features?owner=IS:ada").status_code == 400
    for who, names in (("member", ["of-crew", "of-member"]), ("owner", ["of-owner"])):
        rows = browse(who).get("/flags/?owner=mine").context["rows"]
        assert [row.flag.name for row in rows] == names
    page = browse("viewer").get("/flags/?sort=owner")
    assert [row.flag.name for row in page.context["rows"]][:2] == ["of-crew", "of-member"]
    lines = (
        b"".join(browse("viewer").get("/flags/?format=csv&q=of-crew").streaming_content).decode().splitlines()
    )
    assert lines[1].split(",")[:3] == ["of-crew", "shop", "Crew"]


@for_each(
    ("typed", "shown"), [("member", "Owner: member"), ("group: crew", "Owner: Crew"), ("", "Set an owner")]
)
def test_the_form_takes_names(browse, people, crew, cart, typed, shown):
    browser = browse("owner")
    answer = browser.post(FORM, fields(browser, owner=typed, description="x"), follow=True)
    assert shown in page_text(answer)


def test_the_form_refuses_unknown_names_and_offers_those_of_the_project(browse, people, crew, cart):
    browser = browse("member")
    refusal = browser.post(FORM, fields(browser, owner="nobody", description=""))
    assert refusal.status_code == 400
    assert refusal.context["form"].errors["owner"] == ["Person or group nobody not found."]
    offered = {value for value, _ in refusal.context["known"]}
    assert offered == {"owner", "member", "reader"}


def test_a_deleted_owner_is_told_before_and_leaves_the_flag(browse, people, crew, cart):
    Flag.objects.update(owner_group=crew)
    admin = browse("admin")
    assert "It owns 1 flag, which will have no owner." in page_text(
        admin.get(f"/access/groups/{crew.pk}/delete/")
    )
    admin.post(f"/access/groups/{crew.pk}/delete/")
    assert Flag.objects.get().owner_group is None

    Flag.objects.update(owner_user=people["reader"])
    person = f"/access/people/{people['reader'].pk}/delete/"
    assert "the owner of 1 flag, which will have none" in page_text(admin.get(person))
    admin.post(person)
    assert Flag.objects.get().owner_user is None
    assert [event.before["ownedFlags"] for event in events("group-deleted", "user-deleted")] == [
        ["cart"],
        ["cart"],
    ]


def test_archived_flags_are_listed_with_their_owners_in_a_fixed_number_of_queries(
    api, people, crew, django_assert_max_num_queries
):
    for number in range(5):
        make_flag(f"old-{number}")
    Flag.objects.update(owner_group=crew, archived_at="2026-01-01T00:00Z")
    with django_assert_max_num_queries(6):
        features = api["viewer"].get("/api/admin/archive/features").json()["features"]
    assert {flag["owner"]["name"] for flag in features} == {"Crew"}


def test_versions_that_know_no_owners_can_delete_them(people, crew, cart):
    Flag.objects.update(owner_group=crew)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM groups_groupmembership")
        cursor.execute("DELETE FROM groups_group WHERE id = %s", [crew.pk])
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert Flag.objects.get().owner_group_id is None
