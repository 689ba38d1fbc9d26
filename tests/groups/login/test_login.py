"""Logging in with a password, and logging out."""

import re

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.passwords import FREE_ATTEMPTS_OF_ACCOUNT
from groups.models import LoginFailure
from tests.support.cast import make_user

PASSWORD = "correct horse battery"


@pytest.fixture
def anna(db):
    return make_user("anna", email="anna@example.org", password=PASSWORD)


def log_in(client, name="anna", password=PASSWORD, **extra):
    return client.post("/login/", {"username": name, "password": password, **extra})


def is_in(client):
    return client.get("/").status_code == 200


@pytest.mark.parametrize("name", ["anna", "ANNA", "anna@example.org", "Anna@Example.ORG", " anna "])
def test_user_name_and_address_log_in_in_any_case(client, anna, name):
    response = log_in(client, name)
    assert (response.status_code, response["Location"]) == (302, "/")
    assert is_in(client)
    event = AuditEvent.objects.get(type="user-logged-in")
    assert (event.actor_name, event.after) == ("anna", {"how": "password"})


@pytest.mark.parametrize(
    "case", ["wrong password", "unknown", "disabled", "service account", "without a password"]
)
def test_refusals_do_not_say_what_was_wrong(client, anna, case):
    name, password = "anna", PASSWORD
    if case == "wrong password":
        password = "wrong horse"
    elif case == "unknown":
        name = "bertha"
    elif case == "disabled":
        anna.is_active = False
        anna.save()
    elif case == "service account":
        anna.is_service = True
        anna.save()
    else:
        anna.set_unusable_password()
        anna.save()
    response = log_in(client, name, password)
    assert response.status_code == 401
    assert "Wrong user name or password." in response.text
    assert not is_in(client)
    assert password not in response.text


def test_an_empty_form_is_refused(client, db):
    assert log_in(client, "", "").status_code == 400


def test_a_login_redirects_to_next(client, anna):
    assert log_in(client, next="/activity/?x=1")["Location"] == "/activity/?x=1"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        "/\\evil.example",
        "/\n/evil.example",
        "/\t/evil.example",
    ],
)
def test_a_login_never_redirects_to_another_site(client, anna, elsewhere):
    assert log_in(client, next=elsewhere)["Location"] == "/"


def test_a_refused_login_keeps_next(client, anna):
    assert 'name="next" value="/activity/"' in client.get("/login/?next=/activity/").text
    log_in(client)
    assert client.get("/login/?next=/activity/")["Location"] == "/activity/"


def test_the_session_gets_a_new_key(client, anna):
    client.get("/login/")
    session = client.session
    session["planted"] = "before"
    session.save()
    before = session.session_key
    client.cookies["sessionid"] = before
    log_in(client)
    assert client.cookies["sessionid"].value != before
    assert not Session.objects.filter(session_key=before).exists()


def test_the_session_cookie_is_protected(client, anna):
    cookie = log_in(client).cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_form_without_a_csrf_token_is_refused(anna):
    strict = Client(enforce_csrf_checks=True)
    assert log_in(strict).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', strict.get("/login/").text)[1]
    assert log_in(strict, csrfmiddlewaretoken=token).status_code == 302


def test_logging_out_ends_the_session(client, anna):
    log_in(client)
    client.get("/logout/")
    assert is_in(client)
    assert client.post("/logout/")["Location"] == "/login/"
    assert not is_in(client)
    assert not Session.objects.exists()


def test_the_admin_site_uses_the_same_login(client, anna, people):
    assert client.get("/admin/login/?next=/admin/")["Location"] == "/login/?next=/admin/"
    log_in(client)
    assert client.get("/admin/login/?next=/admin/").status_code == 403
    client.force_login(people["admin"])
    assert client.get("/admin/").status_code == 200


def test_disabling_an_account_ends_its_sessions_at_once(client, anna):
    log_in(client)
    anna.is_active = False
    anna.save()
    assert not is_in(client)


def test_a_failed_login_stores_no_password(client, anna):
    log_in(client, name="my secret password", password="x")
    assert "my secret password" not in repr(list(LoginFailure.objects.values()))


@pytest.mark.parametrize(("name", "subject"), [("anna", "anna"), ("hunter2-typed-here", "an unknown name")])
def test_a_failed_login_is_logged_and_audited(client, anna, caplog, name, subject):
    log_in(client, name, "wrong")
    event = AuditEvent.objects.get(type="user-login-failed")
    assert (event.subject, event.after) == (subject, {"address": "127.0.0.1"})
    lines = [record.getMessage() for record in caplog.records if record.name == "flagadmin.login"]
    assert len(lines) == 1
    assert lines[0].startswith("Login failed from 127.0.0.1: ")
    assert {record.address for record in caplog.records if record.name == "flagadmin.login"} == {"127.0.0.1"}
    assert "hunter2" not in caplog.text


def test_throttled_logins_write_no_events(client, anna, caplog):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT + 3):
        log_in(client, "anna", "wrong")
    assert AuditEvent.objects.filter(type="user-login-failed").count() == FREE_ATTEMPTS_OF_ACCOUNT
    assert caplog.messages[-1].startswith("Login failed from 127.0.0.1: too many attempts, ")


def test_pages_and_the_api_say_where_a_failed_login_came_from(client, anna, browse, api):
    log_in(client, "anna", "wrong")
    assert "rejected a login as anna from 127.0.0.1" in " ".join(
        re.sub(r"<[^>]+>", "", browse("admin").get("/activity/?kind=access").text).split()
    )
    [event] = api["admin"].get("/api/admin/events?type=user-login-failed").json()["events"]
    assert event["summary"].endswith(" rejected a login as anna from 127.0.0.1")
    assert event["data"]["address"] == "127.0.0.1"
