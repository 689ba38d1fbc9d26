"""/access/…/grant/: granting an account or a group more from its own page."""

import pytest

from groups.models import Grant, Group, GroupMembership, User
from groups.permissions import BuiltIn
from tests.support.for_each import for_each
from tests.support.page_text import page_text

MEMBER = BuiltIn.MEMBER.value


@pytest.fixture
def team(db):
    return Group.objects.create(name="Team")


@pytest.fixture
def address(people, shop):
    return f"/access/people/{people['outsider'].pk}/grant/"


def test_everything_at_once(browse, people, team, address):
    answer = browse("admin").post(
        address,
        {"project": "shop", "role": MEMBER, "group": "Team", "rootRole": BuiltIn.VIEWER.value},
        follow=True,
    )

    outsider = User.objects.get(username="outsider")
    assert Grant.objects.filter(user=outsider, project="shop", role=MEMBER).exists()
    assert list(outsider.groups.all()) == [team]
    assert outsider.root_role_id == BuiltIn.VIEWER
    assert answer.redirect_chain[-1][0] == address.removesuffix("grant/")
    assert "Granted outsider: Member in shop, membership of Team, Viewer everywhere." in page_text(answer)


def test_what_is_left_empty_stays(browse, people, shop, address):
    people["outsider"].root_role_id = BuiltIn.VIEWER.value
    people["outsider"].save()

    browse("admin").post(address, {"project": "shop", "role": MEMBER})

    assert User.objects.get(username="outsider").root_role_id == BuiltIn.VIEWER
    assert Grant.objects.filter(user=people["outsider"]).count() == 1


@for_each(
    ("form", "message"),
    [
        ({}, "Choose what to grant."),
        ({"project": "shop"}, "Choose the role in this project."),
        ({"role": MEMBER}, "Choose the project for this role."),
        ({"group": "Nobody"}, "Select a valid choice."),
        ({"project": "nosuch", "role": MEMBER}, "Select a valid choice."),
    ],
)
def test_what_is_missing_is_told(browse, team, address, form, message):
    answer = browse("admin").post(address, form)

    assert answer.status_code == 400
    assert message in page_text(answer)


@pytest.mark.django_db(transaction=True)
def test_all_or_nothing(browse, people, team, address):
    own = f"/access/people/{people['admin'].pk}/grant/"

    answer = browse("admin").post(own, {"project": "shop", "role": MEMBER, "rootRole": BuiltIn.VIEWER.value})

    assert answer.status_code == 403
    assert "Nobody with the Admin role could log in" in page_text(answer)
    assert not Grant.objects.filter(user=people["admin"]).exists()


def test_a_group_and_a_service_account(browse, people, shop, team):
    admin = browse("admin")

    assert "Root role" not in page_text(admin.get(f"/access/groups/{team.pk}/grant/"))
    admin.post(f"/access/groups/{team.pk}/grant/", {"project": "shop", "role": MEMBER})
    admin.post(f"/access/service-accounts/{people['service'].pk}/grant/", {"group": "Team"})

    assert Grant.objects.get(group=team).role_id == MEMBER
    assert GroupMembership.objects.get(group=team).user == people["service"]


def test_only_admins_grant_from_here(browse, people, team, address):
    for who in ("owner", "viewer"):
        assert browse(who).get(address).status_code == 403
        assert browse(who).post(address, {"group": "Team"}).status_code == 403
        assert browse(who).get(f"/access/groups/{team.pk}/grant/").status_code == 403
    assert not GroupMembership.objects.exists()


def test_many_projects_and_groups_are_typed(browse, team, address, monkeypatch):
    monkeypatch.setattr("projects.members.grant_page.MAX_OPTIONS", 0)

    assert browse("admin").get(address).text.count("<select") == 2
    browse("admin").post(address, {"project": "shop", "role": MEMBER, "group": "Team"})
    assert Grant.objects.filter(user__username="outsider", project="shop").exists()
    assert team.members.filter(username="outsider").exists()


def test_revoking_and_leaving_return_to_the_account(browse, people, shop, team):
    GroupMembership.objects.create(group=team, user=people["member"])
    account = f"/access/people/{people['member'].pk}/"
    grant = Grant.objects.get(user=people["member"])
    admin = browse("admin")

    revoked = admin.post("/projects/shop/access/take", {"grant": grant.pk, "next": account})
    left = admin.post(f"/access/groups/{team.pk}/members/{people['member'].pk}/remove", {"next": account})

    assert revoked["Location"] == left["Location"] == account
    assert not Grant.objects.filter(user=people["member"]).exists()
    assert not team.members.exists()
