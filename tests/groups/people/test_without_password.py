"""Accounts that log in through the identity provider alone are not told of a password that they do not have."""

import pytest
from allauth.socialaccount.models import SocialAccount

from groups.login.sign_on.settings import OidcSettings
from groups.permissions import BuiltIn
from tests.support.cast import make_user

ISSUER = "https://login.example.org"
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def provider(settings):
    settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin", button="Log in")


@pytest.fixture
def linked(db):
    """Without a password, as accounts of the provider are made."""
    user = make_user("linked", root_role=BuiltIn.EDITOR)
    user.set_unusable_password()
    user.save()
    SocialAccount.objects.create(user=user, provider=ISSUER, uid="linked", extra_data={})
    return user


def log_in(client, user):
    client.force_login(user)
    return client


def test_the_account_page_names_the_provider_alone(client, linked):
    page = log_in(client, linked).get("/account/").text
    assert "Choose a password" in page
    assert "Change password" not in page
    assert "your password" not in page
    assert f"You log in through {ISSUER} alone." in page


def test_with_password_login_off_a_password_that_is_left_is_not_mentioned(client, linked, settings):
    linked.set_password(PASSWORD)
    linked.save()
    settings.PASSWORD_LOGIN = False
    log_in(client, linked)
    for url in ("/account/", "/account/two-step/"):
        assert "password" not in client.get(url).text.replace("password manager", ""), url


def test_an_account_with_both_is_told_of_both(client, linked):
    linked.set_password(PASSWORD)
    linked.save()
    page = log_in(client, linked).get("/account/").text
    assert f"You log in with your password or through {ISSUER} alone." in page
    assert "Change password" in page


def test_choosing_a_first_password(client, linked):
    log_in(client, linked)
    page = client.get("/account/password/").text
    assert "Choose a password" in page
    assert "Current password" not in page
    answer = client.post(
        "/account/password/", {"password": PASSWORD, "confirmPassword": PASSWORD}, follow=True
    )
    assert "Password set." in answer.text


def test_an_admin_is_not_told_of_a_password_to_reset(browse, linked):
    admin = browse("admin")
    page = admin.get(f"/access/people/{linked.pk}/").text
    assert "Set a password by link" in page
    assert "Reset password" not in page
    reset = f"/access/people/{linked.pk}/reset-password/"
    page = admin.get(reset).text
    assert "Set a password for linked" in page
    assert "current password" not in page
    made = admin.post(reset, follow=True).text
    assert "/login/link/" in made
    assert "password is reset" not in made


@pytest.mark.parametrize("link_by_email", [True, False])
def test_new_people_are_not_told_of_a_password_where_there_is_none(browse, settings, link_by_email):
    settings.PASSWORD_LOGIN = False
    settings.SIGN_ON = OidcSettings(
        issuer=ISSUER, client_id="flagadmin", button="Log in", link_by_email=link_by_email
    )
    admin = browse("admin")
    form = admin.get("/access/people/new/").text
    assert "They can log in with it too." not in form
    assert ("is linked by it" in form) is link_by_email
    answer = admin.post("/access/people/new/", {"username": "new", "email": "new@example.org"}, follow=True)
    assert "Created new." in answer.text
    assert "password" not in answer.text
