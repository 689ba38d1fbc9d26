"""/auth/: logging in with JSON, and choosing a password with a link."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from flagadmin.core.audit.models import AuditEvent
from groups.login.links import create_login_link
from groups.login.passwords import FREE_ATTEMPTS_OF_ACCOUNT
from tests.support.cast import make_user
from tests.support.second_factor import code_of, set_up_app

PASSWORD, NEW = "correct horse battery", "staple 42 tomorrow"
LOGIN = "/auth/simple/login"


@pytest.fixture
def anna(people):
    return make_user("anna", email="anna@example.org", password=PASSWORD, root_role=2)


@pytest.fixture
def visitor():
    return APIClient(enforce_csrf_checks=True)


def log_in(visitor, password=PASSWORD, name="anna", **extra):
    return visitor.post(LOGIN, {"username": name, "password": password, **extra})


def is_in(visitor):
    return visitor.get("/api/admin/user").status_code == 200


@pytest.mark.parametrize("name", ["anna", "Anna@Example.org"])
def test_a_password_begins_a_session(visitor, anna, name):
    response = log_in(visitor, name=name)
    assert response.status_code == 200
    record = response.json()
    assert (record["id"], record["username"], record["rootRole"]) == (anna.pk, "anna", 2)
    assert (record["deletedSessions"], record["activeSessions"]) == (0, 1)
    assert visitor.cookies["sessionid"]["httponly"]
    assert is_in(visitor)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "password"}


def test_writing_with_the_session_needs_the_csrf_token(visitor, anna):
    log_in(visitor)
    assert visitor.post("/api/admin/projects", {"id": "fresh", "name": "Fresh"}).status_code == 403
    token = visitor.cookies["csrftoken"].value
    answer = visitor.post("/api/admin/projects", {"id": "fresh", "name": "Fresh"}, HTTP_X_CSRFTOKEN=token)
    assert answer.status_code == 201


@pytest.mark.parametrize("case", ["wrong password", "unknown", "disabled"])
def test_refusals_do_not_say_what_was_wrong(visitor, anna, case):
    if case == "disabled":
        anna.is_active = False
        anna.save()
    response = log_in(
        visitor,
        password="wrong" if case == "wrong password" else PASSWORD,
        name="bertha" if case == "unknown" else "anna",
    )
    assert response.status_code == 401
    assert response.json()["message"] == "Wrong user name or password."
    assert not is_in(visitor)


def test_failures_count_together_with_those_of_the_login_page(visitor, anna):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT - 1):
        assert log_in(visitor, "wrong").status_code == 401
    assert Client().post("/login/", {"username": "anna", "password": "wrong"}).status_code == 401
    response = log_in(visitor)
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert not is_in(visitor)


def test_not_while_passwords_are_off(visitor, anna, settings):
    settings.PASSWORD_LOGIN = False
    response = log_in(visitor)
    assert (response.status_code, response.json()["name"]) == (403, "InvalidOperationError")
    assert not is_in(visitor)


@pytest.mark.parametrize("body", [{}, {"username": "anna"}, {"username": ["a"], "password": "b"}, []])
def test_malformed_bodies_are_refused(visitor, anna, body):
    assert visitor.post(LOGIN, body).status_code == 400


def test_a_form_of_another_site_cannot_log_in(visitor, anna):
    form = {"username": "anna", "password": PASSWORD}
    assert Client().post(LOGIN, form).status_code == 415
    text = visitor.post(LOGIN, '{"username":"anna"}', content_type="text/plain")
    assert text.status_code == 415
    assert visitor.post(LOGIN, form, HTTP_ORIGIN="https://evil.example").status_code == 403
    assert not is_in(visitor)
    assert visitor.post(LOGIN, form, HTTP_ORIGIN="http://testserver").status_code == 200


class TestSecondFactor:
    @pytest.fixture
    def codes(self, anna):
        return set_up_app(anna)

    def test_the_password_alone_is_not_enough(self, visitor, codes):
        response = log_in(visitor)
        assert response.status_code == 401
        assert "as code" in response.json()["message"]
        assert not is_in(visitor)
        assert visitor.get("/login/code/")["Location"] == "/login/"  # nothing is pending

    def test_a_code_logs_in(self, visitor, codes):
        code = code_of()
        assert log_in(visitor, code=code).status_code == 200
        assert is_in(visitor)
        assert AuditEvent.objects.get(type="user-logged-in").after["how"] == "password, authenticator app"
        assert log_in(APIClient(), code=code).status_code == 401  # each works once

    def test_a_recovery_code_logs_in(self, visitor, codes):
        assert log_in(visitor, code=codes[0]).status_code == 200
        assert AuditEvent.objects.get(type="user-logged-in").after["how"] == "password, recovery code"

    def test_wrong_codes_are_recorded_and_slowed_down(self, visitor, codes):
        for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
            assert log_in(visitor, code="000000").status_code == 401
        assert log_in(visitor, code=code_of()).status_code == 429
        assert not is_in(visitor)
        failures = AuditEvent.objects.filter(type="user-login-failed", after__wrong="second factor")
        assert failures.count() == FREE_ATTEMPTS_OF_ACCOUNT

    def test_an_account_that_lacks_a_required_factor_reads_nothing(self, visitor, anna, settings):
        settings.REQUIRE_SECOND_FACTOR = "all"
        fresh = APIClient()
        assert log_in(fresh).status_code == 200
        assert fresh.get("/api/admin/user").status_code == 403


class TestChoosingAPassword:
    @pytest.fixture
    def token(self, api, anna):
        answer = api["admin"].post("/api/admin/user-admin/reset-password", {"id": "anna"}).json()
        return answer["resetPasswordUrl"].split("/")[-2]

    def test_a_link_names_its_account(self, visitor, anna, token):
        record = visitor.get(f"/auth/reset/validate?token={token}").json()
        assert (record["id"], record["email"], record["token"]) == (anna.pk, "anna@example.org", token)
        assert record["role"]["name"] == "Editor"

    def test_a_link_sets_a_password_once(self, visitor, anna, token):
        body = {"token": token, "password": NEW}
        assert visitor.post("/auth/reset/password", body).status_code == 200
        assert not is_in(visitor)
        assert log_in(visitor, PASSWORD).status_code == 401
        assert log_in(visitor, NEW).status_code == 200
        assert visitor.post("/auth/reset/password", body).status_code == 401
        assert AuditEvent.objects.filter(type="user-password-changed").count() == 2

    def test_a_refused_password_leaves_the_link_usable(self, visitor, token):
        answer = visitor.post("/auth/reset/password", {"token": token, "password": "short"})
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "password")
        assert visitor.post("/auth/reset/password", {"token": token, "password": NEW}).status_code == 200

    def test_a_login_link_changes_no_password(self, visitor, anna):
        token = create_login_link(anna).split("/")[-2]
        assert visitor.get(f"/auth/reset/validate?token={token}").status_code == 403
        answer = visitor.post("/auth/reset/password", {"token": token, "password": NEW})
        assert answer.status_code == 403
        assert log_in(visitor).status_code == 200

    @pytest.mark.parametrize("token", ["", "nonsense"])
    def test_unknown(self, visitor, db, token):
        assert visitor.get(f"/auth/reset/validate?token={token}").status_code == 401
        status = visitor.post("/auth/reset/password", {"token": token, "password": NEW}).status_code
        assert status == (401 if token else 400)

    def test_not_while_passwords_are_off(self, visitor, token, settings):
        settings.PASSWORD_LOGIN = False
        assert visitor.get(f"/auth/reset/validate?token={token}").status_code == 403
        answer = visitor.post("/auth/reset/password", {"token": token, "password": NEW})
        assert answer.status_code == 403


@pytest.mark.parametrize(("password", "status"), [("abc", 400), (NEW, 200), (None, 400)])
def test_passwords_are_checked_against_the_rules(visitor, db, password, status):
    assert visitor.post("/auth/reset/validate-password", {"password": password}).status_code == status


def test_no_email_is_sent(visitor, anna):
    answers = [
        visitor.post("/auth/reset/password-email", {"email": email})
        for email in ("anna@example.org", "nobody@example.org")
    ]
    assert {(answer.status_code, answer.json()["message"]) for answer in answers} == {
        (403, "This server sends no email. Ask an admin for a link to a new password.")
    }


def test_unknown_paths_are_error_records(visitor, db):
    answer = visitor.get("/auth/nonsense")
    assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")
