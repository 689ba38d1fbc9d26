"""Admins see who has a second factor, and remove what somebody has lost; so does a command."""

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.sign_on.settings import OidcSettings
from groups.models import User
from groups.permissions import BuiltIn
from tests.support.cast import client, make_token, make_user
from tests.support.page_text import page_text
from tests.support.second_factor import SECRET


def browser_of(user):
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def admin(bert):
    bert.root_role_id = BuiltIn.ADMIN
    bert.save()
    return browser_of(bert)


def test_the_list_says_who_has_one(admin, anna):
    text = page_text(admin.get("/access/people/?sort=two_step"))
    assert text.index("bert") < text.index("anna")
    lines = b"".join(admin.get("/access/people/?format=csv").streaming_content).decode().splitlines()
    assert [line.split(",")[0:5:4] for line in lines] == [
        ["Name", "Two-step verification"],
        ["anna", "on"],
        ["bert", "off"],
    ]


def test_an_admin_removes_the_factors_of_somebody_else(admin, anna):
    page = f"/access/people/{anna.pk}/"
    assert "On authenticator app, recovery codes" in page_text(admin.get(page))
    assert "authenticator app" in page_text(admin.get(f"{page}two-step/remove/"))

    answer = admin.post(f"{page}two-step/remove/", follow=True)

    assert "Removed the second factors of anna." in page_text(answer)
    assert not Authenticator.objects.exists()
    event = AuditEvent.objects.get(type="user-second-factor-removed")
    assert (event.actor_name, event.subject) == ("bert", "anna")
    assert event.before == {"factors": ["authenticator app", "recovery codes"]}


def test_an_admin_removes_neither_their_own_factors_nor_twice(admin, anna, bert):
    assert admin.post(f"/access/people/{bert.pk}/two-step/remove/").status_code == 403
    admin.post(f"/access/people/{anna.pk}/two-step/remove/")
    answer = admin.post(f"/access/people/{anna.pk}/two-step/remove/")
    assert answer.status_code == 403
    assert "anna has no second factor." in answer.text


def test_a_service_account_has_no_factors_to_remove(admin):
    robot = make_user("robot", is_service=True)
    assert admin.post(f"/access/people/{robot.pk}/two-step/remove/").status_code == 404


@pytest.mark.parametrize("name", ["anna", "Anna"])
def test_the_command_removes_the_factors(anna, capsys, name):
    call_command("remove_second_factor", name)
    assert "anna logs in with the password alone now." in capsys.readouterr().out
    assert not Authenticator.objects.exists()
    assert AuditEvent.objects.get(type="user-second-factor-removed").actor_name == "flagadmin"


@pytest.mark.parametrize(
    ("account", "sentence"),
    [
        ({"is_active": False}, "anna is disabled."),
        (
            {"password": "!"},
            "anna has no other way to log in. Make a one-time link: manage.py login_link anna",
        ),
    ],
    ids=["disabled", "without a password"],
)
def test_the_command_says_who_cannot_log_in_afterwards(anna, capsys, account, sentence):
    User.objects.filter(pk=anna.pk).update(**account)
    call_command("remove_second_factor", "anna")
    assert capsys.readouterr().out == f"Removed. {sentence}\n"


@pytest.mark.parametrize(
    ("link_by_email", "email", "sentence"),
    [
        (True, "anna@example.com", "anna logs in through the identity provider alone now."),
        (True, None, "anna has no other way to log in. Make a one-time link: manage.py login_link anna"),
        (
            False,
            "anna@example.com",
            "anna has no other way to log in. Make a one-time link: manage.py login_link anna",
        ),
    ],
)
def test_the_command_says_who_is_left_with_the_identity_provider(
    anna, capsys, settings, link_by_email, email, sentence
):
    User.objects.filter(pk=anna.pk).update(email=email)
    settings.PASSWORD_LOGIN = False
    settings.SIGN_ON = OidcSettings(
        issuer="https://idp.example.com",
        client_id="flagadmin",
        client_secret="-",
        link_by_email=link_by_email,
    )
    call_command("remove_second_factor", "anna")
    assert capsys.readouterr().out == f"Removed. {sentence}\n"


@pytest.mark.parametrize(
    ("name", "reason"), [("nobody", "No person is named nobody."), ("bert", "bert has no second factor.")]
)
def test_the_command_refuses_unknown_names_and_accounts_without_factors(bert, name, reason):
    with pytest.raises(CommandError, match=reason):
        call_command("remove_second_factor", name)


def test_factors_are_deleted_with_the_account(admin, anna):
    assert admin.post(f"/access/people/{anna.pk}/delete/").status_code == 302
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize("where", ["api", "admin site"])
def test_no_secret_is_in_an_answer(anna, admin, where):
    stored = [str(value) for factor in Authenticator.objects.all() for value in factor.data.values()]
    secrets = [SECRET, *anna.recovery_codes, *(value for value in stored if len(value) > 20)]
    assert len(secrets) == 13
    if where == "api":
        token = client(make_token("admin"))
        paths = ["", f"/{anna.pk}"]
        answers = [token.get(f"/api/admin/user-admin{path}") for path in paths]
        answers.append(token.get("/api/admin/events"))
        answers.append(client(make_token("personal", user=anna)).get("/api/admin/user"))
    else:
        answers = [admin.get("/admin/"), admin.get(f"/admin/groups/user/{anna.pk}/change/")]
        assert admin.get("/admin/mfa/authenticator/").status_code == 404
    for answer in answers:
        assert answer.status_code == 200
        assert not any(secret in answer.text for secret in secrets)
