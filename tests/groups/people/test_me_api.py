"""/api/admin/user: the caller's account, permissions and password."""

import pytest
from django.test import Client

from groups.models import Grant, Role

URL = "/api/admin/user"
PASSWORD = "correct horse battery"


def test_an_admin(api):
    body = api["admin"].get(URL).json()
    assert body["user"]["username"] == "admin"
    assert body["permissions"] == [{"permission": "ADMIN"}]


def test_project_roles(api):
    permissions = api["member"].get(URL).json()["permissions"]
    assert {"permission": "CREATE_FEATURE", "project": "shop"} in permissions
    assert all(held["project"] == "shop" for held in permissions)


def test_environment_roles(api, people, shop):
    role = Role.objects.create(name="Switcher", type="custom")
    role.permissions.create(permission="UPDATE_FEATURE_ENVIRONMENT", environment_id="development")
    Grant.objects.create(role=role, project=shop, user=people["outsider"])
    assert api["outsider"].get(URL).json()["permissions"] == [
        {"permission": "UPDATE_FEATURE_ENVIRONMENT", "project": "shop", "environment": "development"}
    ]


def test_root_roles(api):
    permissions = api["editor"].get(URL).json()["permissions"]
    assert {"permission": "CREATE_SEGMENT"} in permissions
    assert {"permission": "CREATE_FEATURE", "project": "default"} in permissions
    assert api["viewer"].get(URL).json()["permissions"] == []


def test_an_admin_token(api):
    body = api["admin_token"].get(URL).json()
    assert (body["user"]["id"], body["user"]["isAPI"]) == (None, True)


def test_by_session(people):
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


def test_change_password(api, viewer):
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
def test_change_password_refused(api, viewer, given, path):
    response = change(api["viewer"], **given)
    assert response.status_code == 400
    assert path in [problem["path"] for problem in response.json()["details"]]


def test_guessing_the_old_one_is_throttled(standing_clock, api, viewer):
    statuses = [change(api["viewer"], old="wrong").status_code for _ in range(6)]
    assert statuses == [400] * 5 + [429]
