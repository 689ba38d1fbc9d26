"""/access/people/ and /access/service-accounts/: roles, one-time links, disabling and deleting accounts."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from groups.models import ApiToken, Grant, Group, GroupMembership, User
from groups.permissions import BuiltIn
from projects.models import Project
from tests.support.cast import client, make_token
from tests.support.page_text import page_text


def secret_of(answer):
    return re.search(r'id="secret">([^<]+)<', answer.text)[1]


def names(browser, query):
    lines = b"".join(browser.get(f"/access/people/?format=csv&{query}").streaming_content).decode()
    return [line.split(",")[0] for line in lines.splitlines()[1:]]


def test_the_page_shows_roles_and_where_they_come_from(browse, people, shop):
    group = Group.objects.create(name="Team", root_role_id=BuiltIn.EDITOR.value)
    GroupMembership.objects.create(group=group, user=people["member"])
    Grant.objects.create(group=group, project=shop, role_id=BuiltIn.OWNER.value)

    page = page_text(browse("admin").get(f"/access/people/{people['member'].pk}/"))

    assert "Editor everywhere Team Remove from Team" in page
    assert "Owner shop Team" in page
    assert "Member shop granted directly Revoke Member in shop" in page


def test_projects_of_groups_count_and_each_counts_once(browse, people, shop):
    group, other = Group.objects.create(name="Team"), Project.objects.create(pk="other", name="Other")
    GroupMembership.objects.create(group=group, user=people["member"])
    for project in (shop, other):
        Grant.objects.create(group=group, project=project, role_id=BuiltIn.OWNER.value)
    lines = (
        b"".join(browse("admin").get("/access/people/?format=csv").streaming_content).decode().splitlines()
    )
    numbers = {name: projects for name, _, _, projects, *_ in (line.split(",") for line in lines)}
    assert (numbers["member"], numbers["owner"], numbers["viewer"]) == ("2", "1", "0")
    assert names(browse("admin"), "sort=-projects")[0] == "member"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=VIEW", ["viewer"]),
        ("role=1", ["admin"]),
        ("q=r&role=-", ["member", "outsider", "owner", "reader"]),
    ],
)
def test_people_are_filtered(browse, people, query, found):
    assert names(browse("admin"), query) == found


def test_people_not_seen_for_half_a_year_are_a_state_to_filter_by(browse, people):
    User.objects.filter(username__in=["viewer", "reader"]).update(
        created_at=timezone.now() - timedelta(days=400)
    )
    make_token("personal", user=people["reader"])
    ApiToken.objects.update(seen_at=timezone.now())

    assert names(browse("admin"), "state=inactive") == ["viewer"]
    page = browse("admin").get("/access/people/?state=inactive").text
    assert "not seen for 180 days" in page
    assert "/api/admin/user-admin/inactive" in page
    assert browse("admin").get("/access/service-accounts/?state=inactive").status_code == 400


@pytest.mark.parametrize("who", ["admin", "disabled"])
def test_a_reset_that_makes_no_sense_is_refused(browse, people, who):
    user = people["admin"] if who == "admin" else people["viewer"]
    User.objects.filter(pk=people["viewer"].pk).update(is_active=False)
    admin, address = browse("admin"), f"/access/people/{user.pk}/reset-password/"

    assert 'class="irreversible" disabled' in admin.get(address).text
    assert admin.post(address).status_code == 403
    assert 'id="secret"' not in admin.post(address, follow=True).text


def test_disabling_suspends_tokens_and_enabling_restores_them(browse, people):
    key = make_token("personal", user=people["viewer"])
    admin, address = browse("admin"), f"/access/people/{people['viewer'].pk}/active"

    admin.post(address, {"active": "no"})
    assert client(key).get("/api/admin/projects").status_code == 401
    admin.post(address, {"active": "yes"})
    assert client(key).get("/api/admin/projects").status_code == 200


def test_the_last_admin_is_neither_disabled_nor_deleted(browse, people):
    admin, address = browse("admin"), f"/access/people/{people['admin'].pk}/"

    assert "reset-password" not in admin.get(address).text
    text = page_text(admin.post(f"{address}active", {"active": "no"}, follow=True))
    assert "Nobody with the Admin role could log in" in text
    assert "Nobody with the Admin role could log in" in page_text(admin.get(f"{address}delete/"))
    assert admin.post(f"{address}delete/").status_code == 403
    assert User.objects.get(username="admin").is_active


def test_a_person_is_changed(browse, people):
    admin, address = browse("admin"), f"/access/people/{people['viewer'].pk}/edit/"

    admin.post(address, {"name": "Vera", "email": "vera@example.com", "rootRole": "2", "username": "other"})

    vera = User.objects.get(pk=people["viewer"].pk)
    assert (vera.username, vera.name, vera.email, vera.root_role_id) == (
        "viewer",
        "Vera",
        "vera@example.com",
        2,
    )
    response = admin.post(address, {"email": "no address"})
    assert "no address is not an email address." in page_text(response)


def test_the_deletion_page_lists_what_is_deleted(browse, people, shop):
    make_token("personal", user=people["member"], name="laptop")
    admin, address = browse("admin"), f"/access/people/{people['member'].pk}/delete/"

    page = page_text(admin.get(address))
    assert "the token laptop, which stops working" in page
    assert "role Member in shop" in page
    assert admin.post(address)["Location"] == "/access/people/"
    assert not User.objects.filter(username="member").exists()


def test_tokens_of_a_service_account_are_shown_once(browse, people):
    admin = browse("admin")
    response = admin.post("/access/service-accounts/new/", {"username": "deploy-bot", "rootRole": "2"})
    address = response["Location"]

    answer = admin.post(f"{address}tokens/new/", {"description": "pipeline"}, follow=True)

    secret = secret_of(answer)
    assert client(secret).get("/api/admin/projects").status_code == 200
    page = admin.get(address)
    assert secret not in page.text
    revoke = re.search(r'href="([^"]+/revoke/)"', page.text)[1]
    assert "pipeline was last used" in page_text(admin.get(revoke))
    assert admin.post(revoke)["Location"] == address
    assert client(secret).get("/api/admin/projects").status_code == 401


def test_people_and_service_accounts_are_kept_apart(browse, people):
    admin = browse("admin")

    assert admin.get(f"/access/people/{people['service'].pk}/").status_code == 404
    assert admin.get(f"/access/service-accounts/{people['viewer'].pk}/").status_code == 404
