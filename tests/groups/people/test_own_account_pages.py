"""/account/: the user's own password, tokens and sessions."""

import re

import pytest
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, Group, GroupMembership
from groups.permissions import BuiltIn
from tests.support.cast import client as api_client
from tests.support.cast import make_token
from tests.support.page_text import page_text

OLD, NEW = "old password here", "correct horse battery"


@pytest.fixture
def viewer(people):
    people["viewer"].set_password(OLD)
    people["viewer"].save()
    return people["viewer"]


def browser_of(user):
    browser = Client()
    browser.force_login(user)
    return browser


def change(browser, **given):
    form = {"currentPassword": OLD, "password": NEW, "confirmPassword": NEW} | given
    return browser.post("/account/password/", form)


def test_the_page_shows_roles_groups_and_tokens(people, shop):
    group = Group.objects.create(name="Team", root_role_id=BuiltIn.EDITOR)
    GroupMembership.objects.create(group=group, user=people["member"])
    page = page_text(browser_of(people["member"]).get("/account/"))
    assert "Editor everywhere Team" in page
    assert "Member shop granted directly" in page
    assert "Revoke Member" not in page
    assert "Nothing yet" in browser_of(people["outsider"]).get("/account/").text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"currentPassword": "wrong"}, "The current password is wrong."),
        ({"confirmPassword": "other"}, "The new passwords do not match."),
        ({"password": "viewer1", "confirmPassword": "viewer1"}, "too similar to the username"),
        ({"password": "12345", "confirmPassword": "12345"}, "entirely numeric"),
    ],
)
def test_a_wrong_password_change_is_refused(viewer, given, words):
    response = change(browser_of(viewer), **given)
    assert response.status_code == 400
    assert words in response.text
    viewer.refresh_from_db()
    assert viewer.check_password(OLD)


def test_guessing_the_present_password_is_throttled(standing_clock, viewer):
    browser = browser_of(viewer)
    statuses = [change(browser, currentPassword="wrong").status_code for _ in range(6)]
    assert statuses == [400] * 5 + [429]
    assert "Too many attempts" in change(browser, currentPassword="wrong").text


def test_somebody_who_came_by_link_chooses_a_first_password(people):
    people["viewer"].set_unusable_password()
    people["viewer"].save()
    browser = browser_of(people["viewer"])
    assert "Current password" not in browser.get("/account/password/").text
    response = browser.post("/account/password/", {"password": NEW, "confirmPassword": NEW})
    assert response.status_code == 302


def test_logging_out_everywhere_ends_all_sessions(viewer):
    here, elsewhere = browser_of(viewer), browser_of(viewer)
    secret = make_token("personal", user=viewer)
    assert here.post("/account/log-out-everywhere/")["Location"] == "/login/"
    assert here.get("/account/").status_code == elsewhere.get("/account/").status_code == 302
    assert api_client(secret).get("/api/admin/user").status_code == 200
    viewer.refresh_from_db()
    assert browser_of(viewer).get("/account/").status_code == 200
    assert AuditEvent.objects.filter(type="user-logged-out-everywhere").count() == 1


def test_a_new_token_is_shown_once(viewer):
    browser = browser_of(viewer)
    form = {"description": "laptop", "expiresAt": "2099-12-31"}
    response = browser.post("/account/tokens/new/", form, follow=True)
    secret = re.search(r"user:[0-9a-f]{56}", response.text)[0]
    assert api_client(secret).get("/api/admin/user").json()["user"]["username"] == "viewer"
    assert "no-store" in response["Cache-Control"]
    assert "laptop" in browser.get("/account/").text
    assert secret not in browser.get("/account/").text


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"description": ""}, 400, "required"),
        ({"description": "x", "expiresAt": "2020-01-01"}, 400, "Enter a date in the future."),
        ({"description": "x", "expiresAt": "soon"}, 400, "valid date"),
        ({"description": "laptop"}, 409, "has a token named"),
    ],
)
def test_a_malformed_token_is_refused(viewer, form, status, words):
    make_token("personal", user=viewer, name="laptop")
    response = browser_of(viewer).post("/account/tokens/new/", form)
    assert response.status_code == status
    assert words in response.text


def test_a_revoked_token_stops_working(viewer, people):
    make_token("personal", user=viewer, name="laptop")
    make_token("personal", user=people["editor"], name="theirs")
    ids = dict(ApiToken.objects.values_list("name", "id"))
    browser = browser_of(viewer)
    assert browser.post(f"/account/tokens/{ids['laptop']}/revoke/").status_code == 302
    assert browser.post(f"/account/tokens/{ids['theirs']}/revoke/").status_code == 404
    assert list(ApiToken.objects.values_list("name", flat=True)) == ["theirs"]
    assert browser.get(f"/account/tokens/{ids['theirs']}/revoke/").status_code == 405
