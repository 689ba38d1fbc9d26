"""FLAGADMIN_PASSWORD_LOGIN=off: nobody logs in with a password, and the shell is the way back in."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.links import create_login_link, create_setup_link
from groups.login.sign_on.settings import OidcSettings
from groups.models import LoginLink, User
from groups.permissions import BuiltIn
from tests.support.cast import make_user

PASSWORD = "correct horse battery"
OFF = "Password login is off here."


@pytest.fixture(autouse=True)
def off(settings):
    settings.SIGN_ON = OidcSettings(
        issuer="https://login.example.org", client_id="flagadmin", button="Log in with Example"
    )
    settings.PASSWORD_LOGIN = False


@pytest.fixture
def anna(db):
    return make_user("anna", root_role=BuiltIn.ADMIN, password=PASSWORD)


@pytest.fixture
def visitor(anna):
    visitor = Client()
    visitor.force_login(anna)
    return visitor


def is_in(client):
    return client.get("/account/").status_code == 200


def test_the_login_page_has_the_providers_button_alone(client, db):
    page = client.get("/login/?next=/activity/").text
    assert 'href="/login/sso/?next=%2Factivity%2F"' in page
    assert 'type="password"' not in page
    assert "createadmin" not in page


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_a_password_is_refused_unchecked(client, anna, password):
    answer = client.post("/login/", {"username": "anna", "password": password})
    assert answer.status_code == 403
    assert OFF in answer.text
    assert not is_in(client)
    assert not AuditEvent.objects.exists()


def test_earlier_links_do_not_work(client, anna, settings):
    settings.PASSWORD_LOGIN = True
    link = create_login_link(anna)
    User.objects.all().delete()
    setup = create_setup_link()
    settings.PASSWORD_LOGIN = False
    for old in (link, setup):
        for answer in (client.get(old), client.post(old, {"username": "x", "password": PASSWORD})):
            assert answer.status_code == 403
            assert OFF in answer.text
    assert not is_in(client)
    assert create_setup_link() is None


def shell_link(capsys, name):
    call_command("login_link", name)
    return capsys.readouterr().out.strip()


def test_a_link_from_the_shell_logs_in_once(client, anna, capsys):
    link = shell_link(capsys, "ANNA")
    assert client.post(link).status_code == 302
    assert is_in(client)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "link"}
    assert Client().post(link).status_code == 404


def test_a_link_from_the_shell_works_with_passwords_on_too(client, anna, capsys, settings):
    settings.PASSWORD_LOGIN = True
    settings.PUBLIC_URL = "https://flags.example.org"
    link = shell_link(capsys, "anna")
    assert link.startswith("https://flags.example.org/login/link/shell-")
    assert client.post(link.removeprefix(settings.PUBLIC_URL)).status_code == 302


@pytest.mark.parametrize("address", ["", "https://flags.example.org"])
def test_the_shell_says_if_the_link_has_no_address(anna, capsys, settings, address):
    settings.PUBLIC_URL = address
    call_command("login_link", "anna")
    said = capsys.readouterr().err
    assert "It logs in anna, once, within 15 minutes." in said
    assert ("FLAGADMIN_PUBLIC_URL is not set" in said) == (address == "")


def test_no_other_link_becomes_one_of_the_shell(client, anna, settings):
    settings.PASSWORD_LOGIN = True
    token = create_login_link(anna).split("/")[3]
    settings.PASSWORD_LOGIN = False
    assert client.post(f"/login/link/shell-{token}/").status_code == 404


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"username": "bertha"}, "There is no user named anna."),
        ({"is_service": True}, "There is no user named anna."),
        ({"is_active": False}, "anna is disabled."),
    ],
)
def test_the_shell_makes_no_link_that_would_not_work(anna, change, message):
    User.objects.update(**change)
    with pytest.raises(CommandError, match=message):
        call_command("login_link", "anna")
    assert not LoginLink.objects.exists()


def test_nobody_sets_a_password_by_the_api(visitor, anna):
    def post(path, **body):
        return visitor.post(f"/api/admin/{path}", body, content_type="application/json")

    passwords = {
        "oldPassword": PASSWORD,
        "password": "another sound one",
        "confirmPassword": "another sound one",
    }
    answers = [
        post("user/change-password", **passwords),
        post(f"user-admin/{anna.pk}/change-password", password="another sound one"),
        post("user-admin", username="bertha", password="another sound one"),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["name"]) == (403, "InvalidOperationError"), answer.json()
        assert OFF in answer.json()["message"]
    anna.refresh_from_db()
    assert anna.check_password(PASSWORD)
    assert User.objects.count() == 1


def test_a_new_user_gets_no_link_by_the_api(visitor):
    answer = visitor.post("/api/admin/user-admin", {"username": "bertha"}, content_type="application/json")
    assert answer.status_code == 201
    assert "inviteLink" not in answer.json()
    assert not LoginLink.objects.exists()


def test_nobody_sets_a_password_on_the_pages(visitor, anna):
    bertha = make_user("bertha")
    for page in (visitor.get("/account/password/"), visitor.post("/account/password/", {"password": "x"})):
        assert page.status_code == 403
        assert OFF in page.text
    reset = f"/access/people/{bertha.pk}/reset-password/"
    assert OFF in visitor.get(reset).text
    assert visitor.post(reset).status_code == 403
    assert "/account/password/" not in visitor.get("/account/").text
    assert reset not in visitor.get(f"/access/people/{bertha.pk}/").text
    assert not LoginLink.objects.exists()


@pytest.mark.parametrize(
    ("by_email", "message"),
    [(True, "with this email address is linked to this account"), (False, "It has no login yet")],
)
def test_a_new_user_gets_no_link_on_the_pages(visitor, settings, by_email, message):
    settings.SIGN_ON = OidcSettings(issuer="https://login.example.org", client_id="x", link_by_email=by_email)
    assert "one-time login link" not in visitor.get("/access/people/new/").text
    page = visitor.post("/access/people/new/", {"username": "bertha", "email": "b@example.org"}, follow=True)
    assert message in page.text
    assert not LoginLink.objects.exists()


def test_a_form_of_an_ended_session_comes_back_after_the_login_in_another_tab(visitor, people, shop):
    form = {"name": "one-click-pay", "type": "release"}
    response = Client().post("/projects/shop/features/new", form)
    assert response.status_code == 401
    assert 'target="_blank"' in response.text
    # The browser sends it again when the page is reloaded, with the token of before the login.
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people["admin"])
    again = strict.post("/projects/shop/features/new", form, headers={"Origin": "http://testserver"})
    assert 'value="one-click-pay"' in strict.get(again["Location"]).text
