"""POST /api/admin/user-admin/reset-password: an admin resets somebody's password."""

import pytest
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, LoginLink
from tests.support.cast import make_token, make_user

URL = "/api/admin/user-admin/reset-password"


@pytest.fixture
def anna(people):
    user = make_user("anna", email="anna@example.org", password="correct horse battery")
    make_token("personal", user=user)
    return user


def named(anna, by):
    return {"email": "Anna@Example.org", "user name": "anna", "id": str(anna.pk), "number": anna.pk}[by]


@pytest.mark.parametrize("by", ["email", "user name", "id", "number"])
def test_a_reset_answers_with_a_link(api, anna, by):
    response = api["admin"].post(URL, {"id": named(anna, by)})
    assert response.status_code == 200
    link = response.json()["resetPasswordUrl"]
    assert link.startswith("http://testserver/login/link/")
    assert LoginLink.objects.get().user == anna
    event = AuditEvent.objects.get(type="user-password-changed")
    assert (event.actor_name, event.subject) == ("admin", "anna")
    assert link.split("/")[-2] not in repr(vars(event))


def test_a_reset_ends_sessions_tokens_and_older_links(api, anna):
    browser = Client()
    browser.force_login(anna)
    first_link = api["admin"].post(URL, {"id": "anna"}).json()["resetPasswordUrl"]
    assert browser.get("/").status_code == 302
    assert not ApiToken.objects.filter(user=anna).exists()
    anna.refresh_from_db()
    assert not anna.has_usable_password()
    api["admin"].post(URL, {"id": "anna"})
    assert Client().post(first_link.removeprefix("http://testserver")).status_code == 404


@pytest.mark.parametrize("wanted", ["nobody@example.org", "999999", "service", ""])
def test_an_unknown_person_is_refused(api, anna, wanted):
    response = api["admin"].post(URL, {"id": wanted})
    assert response.status_code == 400
    assert response.json()["details"][0]["path"] == "id"


def test_the_own_password_is_not_reset(api, people):
    assert api["admin"].post(URL, {"id": "admin"}).json()["name"] == "InvalidOperationError"


def test_not_while_passwords_are_off(api, anna, settings):
    settings.PASSWORD_LOGIN = False
    assert api["admin"].post(URL, {"id": "anna"}).status_code == 403
    anna.refresh_from_db()
    assert anna.has_usable_password()
