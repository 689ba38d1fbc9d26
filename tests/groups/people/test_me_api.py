"""/api/admin/user: the caller's account, permissions and password."""

import pytest
from django.test import Client

from groups.models import Grant, Role
from tests.support.cast import client, make_token
from tests.support.description import check, description

URL = "/api/admin/user"
PASSWORD = "correct horse battery"


def test_an_admin_has_one_permission(api):
    body = api["admin"].get(URL).json()
    assert body["user"]["username"] == "admin"
    assert body["permissions"] == [{"permission": "ADMIN"}]


@pytest.mark.parametrize("of_person", [True, False])
def test_the_account_is_described_in_full(people, of_person):
    token = make_token("personal", user=people["viewer"]) if of_person else make_token("admin")
    described, answer = description(), client(token).get(URL)
    check(described, "get", URL, answer)


def test_permissions_of_a_project_role_name_the_project(api):
    permissions = api["member"].get(URL).json()["permissions"]
    assert {"permission": "CREATE_FEATURE", "project": "shop"} in permissions
    assert all(held["project"] == "shop" for held in permissions)


def test_permissions_in_an_environment_name_it(api, people, shop):
    role = Role.objects.create(name="Switcher", type="custom")
    role.permissions.create(permission="UPDATE_FEATURE_ENVIRONMENT", environment_id="development")
    Grant.objects.create(role=role, project=shop, user=people["outsider"])
    assert api["outsider"].get(URL).json()["permissions"] == [
        {"permission": "UPDATE_FEATURE_ENVIRONMENT", "project": "shop", "environment": "development"}
    ]


def test_permissions_of_a_root_role_name_no_project(api):
    permissions = api["editor"].get(URL).json()["permissions"]
    assert {"permission": "CREATE_SEGMENT"} in permissions
    assert {"permission": "CREATE_FEATURE", "project": "default"} in permissions
    assert api["viewer"].get(URL).json()["permissions"] == []


def test_an_admin_token_is_no_account(api):
    body = api["admin_token"].get(URL).json()
    assert (body["user"]["id"], body["user"]["isAPI"]) == (None, True)


def test_a_session_answers_for_its_account(people):
    browser = Client()
    browser.force_login(people["viewer"])
    assert browser.get(URL).json()["user"]["username"] == "viewer"


@pytest.fixture
def viewer(people):
    people["viewer"].set_password("old password here")
    people["viewer"].save()
    return people["viewer"]


def change(client, old="old password here", new=PASSWORD, again=PASSWORD):
    body = {"oldPassword": old, "password": new, "confirmPassword": again}
    return client.post(f"{URL}/change-password", body)


def test_changing_the_password_ends_all_sessions(api, viewer):
    browser = Client()
    browser.force_login(viewer)
    assert change(api["viewer"]).status_code == 200
    assert browser.get("/").status_code == 302
    assert Client().post("/login/", {"username": "viewer", "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"old": "wrong"}, "oldPassword"),
        ({"again": "different"}, "confirmPassword"),
        ({"new": "123", "again": "123"}, "password"),
    ],
)
def test_a_wrong_password_change_is_refused(api, viewer, given, path):
    response = change(api["viewer"], **given)
    assert response.status_code == 400
    assert path in [problem["path"] for problem in response.json()["details"]]


def test_guessing_the_old_password_is_throttled(standing_clock, api, viewer):
    statuses = [change(api["viewer"], old="wrong").status_code for _ in range(6)]
    assert statuses == [400] * 5 + [429]
