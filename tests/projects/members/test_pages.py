"""/projects/ID/access/: who has which role; adding and removing roles."""

import pytest

from groups.models import Grant, Group, Role, RolePermission
from groups.permissions import BuiltIn
from tests.support.page_text import page_text

MEMBER = BuiltIn.MEMBER.value


def roles_of(user):
    return list(Grant.objects.filter(user=user, project="shop").values_list("role__name", flat=True))


def give(browser, who, role=MEMBER):
    return browser.post("/projects/shop/access/give", {"who": who, "role": role}, follow=True)


def test_holders_are_listed(browse, people, shop):
    Grant.objects.create(group=Group.objects.create(name="Team"), project=shop, role_id=MEMBER)
    lines = b"".join(browse("reader").get("/projects/shop/access/?format=csv").streaming_content).decode()

    assert {tuple(line.split(",")[:3]) for line in lines.splitlines()[1:]} == {
        ("member", "person", "Member"),
        ("owner", "person", "Owner"),
        ("reader", "person", "Reader"),
        ("Team", "group", "Member"),
    }


@pytest.mark.parametrize("typed", ["outsider", "OUTSIDER"])
def test_an_owner_gives_a_role(browse, people, shop, typed):
    page = page_text(give(browse("owner"), typed))

    assert "Granted Member to outsider in shop." in page
    assert roles_of(people["outsider"]) == ["Member"]


@pytest.mark.parametrize("typed", ["group: Team", "team"])
def test_a_group_is_given_a_role(browse, people, shop, typed):
    group = Group.objects.create(name="Team")
    give(browse("owner"), typed)

    assert Grant.objects.get(group=group).role_id == MEMBER


@pytest.mark.parametrize(
    ("who", "role", "message"),
    [
        ("nobody", MEMBER, "Account or group nobody not found."),
        ("group: x", MEMBER, "Group x not found."),
        ("", MEMBER, "Enter a user or a group."),
        ("outsider", "", "Choose a role."),
        ("outsider", BuiltIn.ADMIN.value, "project role 1 not found"),
    ],
)
def test_what_cannot_be_given_is_told(browse, people, shop, who, role, message):
    assert message in page_text(give(browse("owner"), who, role))
    assert roles_of(people["outsider"]) == []


def test_an_owner_takes_a_role_away(browse, people, shop):
    grant = Grant.objects.get(user=people["member"])
    answer = browse("owner").post("/projects/shop/access/take", {"grant": grant.pk}, follow=True)

    assert "Revoked Member from member in shop." in page_text(answer)
    assert roles_of(people["member"]) == []


def test_a_grant_of_another_project_is_not_taken_here(browse, people, shop):
    grant = Grant.objects.create(user=people["outsider"], project_id="default", role_id=MEMBER)
    answer = browse("owner").post("/projects/shop/access/take", {"grant": grant.pk}, follow=True)

    assert "This role has already been revoked." in page_text(answer)
    assert Grant.objects.filter(pk=grant.pk).exists()


def test_roles_beyond_ones_own_are_not_offered(browse, people, shop):
    settings = Role.objects.create(name="Settings keeper", type="custom")
    RolePermission.objects.create(role=settings, permission="PROJECT_SETTINGS_WRITE")
    owner = browse("owner")

    form = owner.get("/projects/shop/access/").text.split("Grant a role")[1].split("</form>")[0]
    assert "Member" in form
    assert "Settings keeper" not in form
    assert give(owner, "outsider", settings.pk).status_code == 403
    assert roles_of(people["outsider"]) == []


@pytest.mark.parametrize("who", ["viewer", "member", "reader"])
def test_others_look_and_are_told_what_they_need(browse, people, shop, who):
    browser = browse(who)
    page = browser.get("/projects/shop/access/")

    assert "access/give" not in page.text
    assert (
        "you need one of these permissions in Shop: Grant and revoke roles, Manage the project."
        in page_text(page)
    )
    refused = give(browser, "outsider")
    assert refused.status_code == 403
    assert roles_of(people["outsider"]) == []


def test_outsiders_see_no_project(browse, people, shop):
    assert browse("outsider").get("/projects/shop/access/").status_code == 404
    assert give(browse("outsider"), "outsider").status_code == 404
