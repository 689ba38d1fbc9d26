"""/access/groups/: members of a group, and who loses which access when it is deleted."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, Group, GroupMembership, Role
from groups.permissions import BuiltIn
from tests.support.page_text import page_text


@pytest.fixture
def contractors(people, shop):
    group = Group.objects.create(name="Former contractors")
    for name in ("outsider", "viewer", "reader"):
        GroupMembership.objects.create(group=group, user=people[name])
    Grant.objects.create(group=group, project=shop, role_id=BuiltIn.MEMBER.value)
    return group


def members(group):
    return sorted(group.members.values_list("username", flat=True))


def test_deleting_says_who_loses_what_by_name(browse, contractors):
    page = page_text(browse("admin").get(f"/access/groups/{contractors.pk}/delete/"))

    assert "Former contractors has 3 members. They lose Member in shop." in page
    assert "One of them has no other access and will see no project." in page
    assert "outsider will see no project" in page
    assert "Delete group Former contractors" in page
    assert Group.objects.filter(pk=contractors.pk).exists()


def test_a_group_that_gives_nothing_takes_nothing(browse, people, db):
    group = Group.objects.create(name="Friends")
    empty = page_text(browse("admin").get(f"/access/groups/{group.pk}/delete/"))
    GroupMembership.objects.create(group=group, user=people["outsider"])
    idle = page_text(browse("admin").get(f"/access/groups/{group.pk}/delete/"))

    assert "Friends has no members. Nobody loses access." in empty
    assert "Friends has 1 member. It gives them no role, so nobody loses access." in idle


def test_deleting_a_group_takes_a_confirmation(browse, contractors):
    answer = browse("admin").post(f"/access/groups/{contractors.pk}/delete/")

    assert answer["Location"] == "/access/groups/"
    assert not Group.objects.exists()
    assert AuditEvent.objects.filter(type="group-deleted", subject="Former contractors").exists()


def test_the_last_group_that_gives_the_admin_role_is_not_deleted(browse, people, contractors):
    people["admin"].root_role = None
    people["admin"].save()
    contractors.root_role = Role.objects.get(pk=BuiltIn.ADMIN.value)
    contractors.save()
    GroupMembership.objects.create(group=contractors, user=people["admin"])

    response = browse("admin").post(f"/access/groups/{contractors.pk}/delete/")

    assert response.status_code == 403
    assert "Nobody with the Admin role could log in" in page_text(response)
    assert Group.objects.exists()


def test_members_are_added_and_removed(browse, people, contractors):
    admin, address = browse("admin"), f"/access/groups/{contractors.pk}/"

    admin.post(f"{address}members/", {"who": "Owner"})
    admin.post(f"{address}members/{people['viewer'].pk}/remove")

    assert members(contractors) == ["outsider", "owner", "reader"]


@pytest.mark.parametrize(
    ("who", "told"), [("nobody", "Account nobody not found."), ("", "Enter a user name")]
)
def test_an_unknown_member_is_refused_by_name(browse, contractors, who, told):
    answer = browse("admin").post(f"/access/groups/{contractors.pk}/members/", {"who": who}, follow=True)

    assert told in page_text(answer)
    assert len(members(contractors)) == 3


def test_members_from_the_identity_provider_are_not_offered_for_change(browse, people, contractors):
    contractors.scim_id = "abc"
    contractors.save()
    admin, address = browse("admin"), f"/access/groups/{contractors.pk}/"

    assert "come from the identity provider" in page_text(admin.get(address))
    assert "members/" not in admin.get(address).text
    text = page_text(admin.post(f"{address}members/", {"who": "owner"}, follow=True))
    assert "come from the identity provider" in text
    assert "owner" not in members(contractors)


def test_a_group_is_created_and_changed(browse, db):
    admin = browse("admin")
    response = admin.post("/access/groups/new/", {"name": "Team", "rootRole": "3", "mappingsSSO": "a, b"})
    group = Group.objects.get(name="Team")
    assert response["Location"] == f"/access/groups/{group.pk}/"
    assert (group.root_role_id, group.mappings_sso) == (3, ["a", "b"])

    admin.post(f"/access/groups/{group.pk}/edit/", {"name": "Crew", "rootRole": ""})
    group.refresh_from_db()
    assert (group.name, group.root_role) == ("Crew", None)


def test_a_name_that_is_taken_is_refused_beside_its_field(browse, contractors):
    answer = browse("admin").post("/access/groups/new/", {"name": "Former contractors"})

    assert answer.status_code == 409
    assert "A group named Former contractors already exists." in page_text(answer)
