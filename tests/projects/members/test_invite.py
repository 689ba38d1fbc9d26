"""Inviting to a project: existing people and groups, somebody new, and roles limited to environments."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from groups.models import Grant, Group, LoginLink, Role, RolePermission, User
from groups.permissions import BuiltIn
from projects.members.actions import Invitation, invite
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.records import events, refused

URL = "/api/admin/projects/shop/access/invite"
PAGE = "/projects/shop/access/invite/"
NEW = {"who": "ada@example.org", "role": BuiltIn.MEMBER.value, "environments": ["development"]}


def held(**by):
    return list(Grant.objects.filter(project="shop", **by).values_list("role__name", flat=True))


def test_an_owner_invites_somebody_new_to_one_environment(api, people):
    invited = api["owner"].post(URL, NEW | {"name": "Ada King"}).json()

    ada = User.objects.get(username="ada@example.org")
    assert (ada.name, ada.email, ada.root_role) == ("Ada King", "ada@example.org", None)
    assert held(user=ada) == ["Member · development"]
    assert invited["isNew"] is True
    role = Role.objects.get(pk=invited["role"]["id"])
    by_environment = {each.environment for each in role.held_permissions() if each.environment}
    everywhere = {each.permission for each in role.held_permissions() if not each.environment}
    assert by_environment == {"development"}
    assert everywhere == {"CREATE_FEATURE", "UPDATE_FEATURE", "READ_PROJECT_API_TOKEN"}
    recorded = events("role-created", "user-created", "project-access-added")
    assert [(event.project, event.actor_name) for event in recorded] == [("shop", "owner")] * 3


def test_the_first_page_says_where_they_are_and_what_they_may_do(api, people):
    link = api["owner"].post(URL, NEW).json()["inviteLink"]
    browser = Client()
    page = browser.post(link.removeprefix("http://testserver"), follow=True)

    words = page_text(page)
    assert "Welcome to flagadmin" in words
    assert "You are logged in as ada@example.org." in words
    assert "Shop Member · development" in words
    assert "only in development: Add strategies, Delete strategies, Edit strategies" in words
    answer = browser.post(
        page.redirect_chain[-1][0],
        {"password": "correct horse battery", "confirmPassword": "correct horse battery"},
    )
    assert answer["Location"] == "/projects/shop/"
    assert browser.get("/projects/shop/").status_code == 200
    assert browser.get("/projects/default/").status_code == 404


@for_each(
    ("who", "by", "name"),
    [("OUTSIDER", "user", "outsider"), ("group: Team", "group", "Team"), ("team", "group", "Team")],
)
def test_existing_people_and_groups_get_the_role_and_no_link(api, people, who, by, name):
    Group.objects.create(name="Team")
    invited = api["owner"].post(URL, NEW | {"who": who, "environments": []}).json()

    assert (invited["kind"], invited["name"], invited["isNew"]) == (by, name, False)
    assert "inviteLink" not in invited
    assert held(**{by: invited["id"]}) == ["Member"]
    assert not LoginLink.objects.exists()


def test_an_equal_role_is_used_again(api, people):
    first = api["owner"].post(URL, NEW).json()["role"]
    assert api["owner"].post(URL, NEW | {"who": "outsider"}).json()["role"] == first
    assert api["owner"].post(URL, NEW | {"who": "reader", "role": first["id"]}).json()["role"] == first

    RolePermission.objects.filter(role=first["id"], permission="CREATE_FEATURE").delete()  # edited meanwhile
    another = api["owner"].post(URL, NEW | {"who": "viewer"}).json()["role"]
    assert another["name"] == "Member · development (2)"


@for_each(
    ("change", "path", "message"),
    [
        (
            {"who": "nobody"},
            "who",
            "Account or group nobody not found. Invite somebody new by email address.",
        ),
        ({"who": "group: x"}, "who", "Group x not found."),
        ({"who": "a@b@c"}, "email", "a@b@c is not an email address."),
        ({"who": "gone"}, "who", "gone is disabled."),
        ({"role": 1}, "role", "Project role 1 not found."),
        ({"environments": ["moon"]}, "environments", "Environment moon not found in shop."),
    ],
)
def test_what_cannot_be_invited_is_told_(api, people, change, path, message):
    User.objects.create(username="gone", is_active=False)
    [problem] = refused(api["owner"].post(URL, NEW | change), 400, "ValidationError")["details"]

    assert problem["path"] == path
    assert problem["message"].startswith(message)


@pytest.mark.django_db(transaction=True)
def test_nobody_gives_more_than_they_have(api, browse, people):
    keeper = Role.objects.create(name="Settings keeper", type="custom")
    RolePermission.objects.create(role=keeper, permission="PROJECT_SETTINGS_WRITE")

    assert "Settings keeper" not in browse("owner").get(PAGE).text
    assert api["owner"].post(URL, NEW | {"role": keeper.pk, "environments": []}).status_code == 403
    assert not User.objects.filter(username="ada@example.org").exists()  # the whole invitation is undone
    for name, status in (("member", 403), ("viewer", 403), ("outsider", 404)):
        assert browse(name).get(PAGE).status_code == status
        assert browse(name).post(PAGE, NEW).status_code == status


def test_the_page_shows_the_link_once_and_problems_beside_their_fields(browse, people):
    owner = browse("owner")
    refusal = owner.post(PAGE, NEW | {"who": "a@b@c"})
    assert refusal.status_code == 400
    assert refusal.context["form"].errors["who"] == ["a@b@c is not an email address."]

    shown = owner.post(PAGE, NEW, follow=True)
    assert "/login/link/" in shown.text
    assert "They have the role Member · development in Shop." in page_text(shown)
    assert "/login/link/" not in owner.get(PAGE + "?created", follow=True).text
    told = owner.post(PAGE, NEW | {"who": "outsider"}, follow=True)
    assert "Granted Member · development to outsider in shop." in page_text(told)


def test_without_password_login_there_is_no_link(api, people, settings):
    settings.PASSWORD_LOGIN = False
    invited = api["owner"].post(URL, NEW).json()
    assert (invited["isNew"], "inviteLink" in invited) == (True, False)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_one_role(callers, people):
    def invite_one(name):
        try:
            return invite("shop", Invitation(**(NEW | {"who": name})), caller=callers("owner")).role.pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        roles = {*pool.map(invite_one, ["outsider", "viewer"])}
    assert len(roles) == 1
