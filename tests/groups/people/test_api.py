"""/api/admin/user-admin is for admins only, and the last admin cannot be removed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import InvalidOperation, NoAccess
from groups.access import Caller
from groups.models import Group, GroupMembership, LoginLink, User
from groups.people.actions import update_account
from groups.permissions import BuiltIn
from tests.support.cast import client, make_token, make_user

URL = "/api/admin/user-admin"
PASSWORD = "correct horse battery"


def problems(response):
    assert response.status_code == 400, response.json()
    return {problem["path"]: problem["message"] for problem in response.json()["details"]}


def test_people_are_listed_with_the_root_roles(api, people):
    body = api["admin"].get(URL).json()
    assert {user["username"] for user in body["users"]} == set(people) - {"service"}
    assert [role["name"] for role in body["rootRoles"]] == ["Admin", "Editor", "Viewer"]


def test_a_person_created_with_a_password_logs_in(api):
    body = {
        "username": "anna",
        "email": "anna@example.org",
        "name": "Anna",
        "rootRole": 3,
        "password": PASSWORD,
    }
    response = api["admin"].post(URL, body)
    assert response.status_code == 201
    user = response.json()
    assert (user["username"], user["rootRole"], user["isActive"]) == ("anna", 3, True)
    assert "inviteLink" not in user
    assert Client().post("/login/", {"username": "anna", "password": PASSWORD}).status_code == 302
    event = AuditEvent.objects.get(type="user-created")
    assert event.after["username"] == "anna"
    assert PASSWORD not in repr(vars(event))


def test_creating_a_person_without_a_password_answers_with_a_link(api):
    user = api["admin"].post(URL, {"email": "anna@example.org", "rootRole": "Editor"}).json()
    assert (user["username"], user["rootRole"]) == ("anna@example.org", BuiltIn.EDITOR)
    assert user["inviteLink"].startswith("http://testserver/login/link/")
    response = Client().post(user["inviteLink"].removeprefix("http://testserver"))
    assert response["Location"] == "/account/password/?next=%2F"
    assert LoginLink.objects.get().user.username == "anna@example.org"


def test_a_person_without_a_role_sees_nothing(api):
    user = api["admin"].post(URL, {"username": "anna", "password": PASSWORD}).json()
    assert user["rootRole"] is None
    assert client(make_token("personal", user=User.objects.get(id=user["id"]))).get(URL).status_code == 403


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"username": ""}, "username"),
        ({"username": "an\tna"}, "username"),
        ({"email": "nonsense"}, "email"),
        ({"rootRole": 99}, "rootRole"),
        ({"rootRole": 5}, "rootRole"),
        ({"rootRole": "Nobody"}, "rootRole"),
        ({"rootRole": True}, "rootRole"),
        ({"password": "anna1"}, "password"),
    ],
)
def test_a_malformed_person_is_refused(api, change, path):
    assert path in problems(api["admin"].post(URL, {"username": "anna"} | change))


def test_all_problems_are_reported_at_once(api):
    body = {"username": "anna", "email": "nonsense", "rootRole": 99, "password": "123456"}
    answer = problems(api["admin"].post(URL, body))
    assert set(answer) == {"email", "rootRole", "password"}
    assert "1 (Admin), 2 (Editor), 3 (Viewer)" in answer["rootRole"]


@pytest.mark.parametrize(
    ("body", "path", "name"),
    [
        ({"username": "VIEWER"}, "username", "VIEWER"),
        ({"username": "x", "email": "v@x.org"}, "email", "v@x.org"),
        ({"username": "V@x.org"}, "username", "V@x.org"),
    ],
)
def test_a_taken_name_or_address_is_refused(api, people, body, path, name):
    people["viewer"].email = "v@X.org"
    people["viewer"].save()
    answer = problems(api["admin"].post(URL, body))
    assert answer == {path: f"User already exists: an account named {name}."}
    other_url = f"{URL}/{people['reader'].pk}"
    if path == "email":
        assert problems(api["admin"].put(other_url, body)) == answer


def test_a_person_is_read(api, people):
    response = api["admin"].get(f"{URL}/{people['viewer'].pk}")
    assert response.json()["username"] == "viewer"
    assert api["admin"].get(f"{URL}/999999").status_code == 404
    assert api["admin"].get(f"{URL}/abc").status_code == 400
    assert api["admin"].get(f"{URL}/{people['service'].pk}").status_code == 404


def test_a_person_is_updated(api, people):
    url = f"{URL}/{people['viewer'].pk}"
    response = api["admin"].put(url, {"name": "Vera", "rootRole": 2, "email": "vera@example.org"})
    assert response.status_code == 200
    assert response.json() | {"name": "Vera", "rootRole": 2, "email": "vera@example.org"} == response.json()
    event = AuditEvent.objects.get(type="user-updated")
    assert (event.before["rootRole"], event.after["rootRole"]) == (3, 2)
    assert api["admin"].put(url, {}).json()["name"] == "Vera"
    assert AuditEvent.objects.filter(type="user-updated").count() == 1


def test_tokens_of_a_disabled_account_are_refused(api, people):
    secret = make_token("personal", user=people["viewer"])
    assert client(secret).get("/api/admin/user").status_code == 200
    api["admin"].put(f"{URL}/{people['viewer'].pk}", {"isActive": False})
    assert client(secret).get("/api/admin/user").status_code == 401


def test_deleting_a_person_deletes_tokens_roles_and_memberships(api, people, shop):
    group = Group.objects.create(name="Team")
    GroupMembership.objects.create(group=group, user=people["owner"])
    secret = make_token("personal", user=people["owner"], name="laptop")
    assert api["admin"].delete(f"{URL}/{people['owner'].pk}").status_code == 200
    assert client(secret).get("/api/admin/user").status_code == 401
    assert not group.memberships.exists()
    assert not shop.grants.filter(role_id=BuiltIn.OWNER).exists()
    before = AuditEvent.objects.get(type="user-deleted").before
    assert (before["groups"], before["tokens"]) == (["Team"], ["laptop"])
    assert before["grants"] == [{"project_id": "shop", "role_id": 4}]
    assert api["admin"].delete(f"{URL}/{people['owner'].pk}").status_code == 404


@pytest.mark.parametrize("change", [{"rootRole": None}, {"rootRole": 2}, {"isActive": False}, None])
def test_the_last_admin_is_neither_demoted_nor_deleted(api, people, change):
    url = f"{URL}/{people['admin'].pk}"
    admin = api["admin_token"]
    response = admin.delete(url) if change is None else admin.put(url, change)
    assert (response.status_code, response.json()["name"]) == (403, "InvalidOperationError")
    assert "Nobody with the Admin role" in response.json()["message"]


@pytest.mark.parametrize("change", [{"rootRole": 2}, {"isActive": False}, None])
def test_admins_do_not_remove_their_own_admin_role(api, people, change):
    make_user("second", root_role=BuiltIn.ADMIN)
    url = f"{URL}/{people['admin'].pk}"
    response = api["admin"].delete(url) if change is None else api["admin"].put(url, change)
    assert response.status_code == 403
    assert "You would lose the Admin role" in response.json()["message"]
    assert api["admin"].put(url, {"name": "New name"}).status_code == 200


def test_an_admin_through_a_group_counts_as_admin(api, people):
    group = Group.objects.create(name="Admins", root_role_id=BuiltIn.ADMIN)
    GroupMembership.objects.create(group=group, user=people["editor"])
    assert api["admin_token"].delete(f"{URL}/{people['admin'].pk}").status_code == 200
    assert api["admin_token"].delete(f"{URL}/{people['editor'].pk}").status_code == 403


def test_an_admin_changes_a_password(api, people):
    browser, another = Client(), Client()
    browser.force_login(people["viewer"])
    url = f"{URL}/{people['viewer'].pk}/change-password"
    assert api["admin"].post(url, {"password": PASSWORD}).status_code == 200
    assert browser.get("/").status_code == 302
    assert another.post("/login/", {"username": "viewer", "password": PASSWORD}).status_code == 302
    assert "too short" in str(api["admin"].post(url, {"password": "x"}).json())
    assert (
        api["admin"].post(f"{URL}/{people['service'].pk}/change-password", {"password": PASSWORD}).status_code
        == 404
    )


def test_passwords_are_checked_against_the_rules(api):
    url = f"{URL}/validate-password"
    assert api["viewer"].post(url, {"password": PASSWORD}).status_code == 200
    assert len(api["viewer"].post(url, {"password": "123456"}).json()["details"]) == 3


def test_people_are_found_by_part_of_a_name(api, people):
    for name in ("admin", "owner", "editor"):
        answer = api[name].get(f"{URL}/search?q=VIEW")
        assert [user["username"] for user in answer.json()] == ["viewer"]
    assert api["admin"].get(f"{URL}/search?q=").json() == []
    for name in ("viewer", "member", "outsider"):
        assert api[name].get(f"{URL}/search?q=VIEW").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_of_two_admins_who_remove_each_other_one_stays():
    first, second = (make_user(name, root_role=BuiltIn.ADMIN) for name in ("first", "second"))

    def demote(acting, target):
        try:
            update_account(target.pk, {"root_role": None}, is_service=False, caller=Caller(user=acting))
        except (InvalidOperation, NoAccess):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(demote, (first, second), (second, first)))
    assert User.objects.filter(root_role=BuiltIn.ADMIN).count() == 1
    assert sorted(outcomes) == [False, True]
