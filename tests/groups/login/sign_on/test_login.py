"""Logging in through a real identity provider."""

from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.sessions.models import Session
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import User
from groups.permissions import BuiltIn
from projects.installation.actions import set_maintenance
from tests.support.cast import make_group, make_user
from tests.support.identity_provider import identity_provider
from tests.support.second_factor import code_of, set_up_app

pytestmark = pytest.mark.processes
ANNA = {"preferred_username": "anna", "name": "Anna B", "email": "anna@example.org", "email_verified": True}
PASSWORD = "correct horse battery"


def is_in(client):
    return client.get("/account/").status_code == 200


def linked(provider, name="anna", **more):
    user = make_user(name, **more)
    SocialAccount.objects.create(user=user, provider=provider.issuer, uid=name)
    return user


def test_without_settings_the_pages_are_404(client, db):
    assert "sso" not in client.get("/login/").text
    for page in ("/login/sso/", "/login/sso/callback/"):
        assert client.get(page).status_code == 404


def test_the_login_page_has_a_button_for_the_provider(client, oidc):
    page = client.get("/login/?next=/activity/%3Fx%3D1").text
    assert 'href="/login/sso/?next=%2Factivity%2F%3Fx%3D1"' in page
    assert "Log in with Example" in page
    assert 'name="password"' in page


def test_the_request_has_pkce_state_and_nonce_and_no_more_than_the_settings_say(client, oidc):
    sent = client.get("/login/sso/?scope=offline_access&auth_params=prompt%3Dnone&process=connect")
    query = {name: value for name, (value,) in parse_qs(urlsplit(sent["Location"]).query).items()}
    assert query["redirect_uri"] == "http://testserver/login/sso/callback/"
    assert query["code_challenge_method"] == "S256"
    assert len(query["code_challenge"]) == 43
    assert len(query["nonce"]) == 43
    assert len(query["state"]) >= 16
    assert set(query["scope"].split()) == {"openid", "profile", "email", "groups"}
    assert "prompt" not in query


def test_a_linked_account_logs_in_and_goes_on(oidc, provider, log_in):
    user = linked(provider)
    provider.know("anna", **ANNA)

    answer = log_in("anna", next_url="/activity/?x=1")

    assert (answer.status_code, answer["Location"]) == (302, "/activity/?x=1")
    assert is_in(answer.client)
    event = AuditEvent.objects.get(type="user-logged-in")
    assert (event.actor_name, event.after) == ("anna", {"how": "provider"})
    user.refresh_from_db()
    assert user.seen_at
    # Neither tokens nor claims are kept.
    assert not SocialToken.objects.exists()
    assert SocialAccount.objects.get().extra_data == {"label": "anna"}


def test_a_session_lasts_as_long_as_one_with_a_password(oidc, provider, log_in):
    linked(provider)
    provider.know("anna", **ANNA)
    age = log_in("anna").client.session.get_expiry_age()
    assert 14 * 24 * 3600 - 600 < age <= 14 * 24 * 3600


def test_an_unfinished_login_is_forgotten_soon(client, oidc):
    client.get("/login/sso/")
    assert client.session.get_expiry_age() == 600


def test_a_public_client_sends_no_secret(oidc, provider, log_in):
    oidc(client_id="public", client_secret="")
    linked(provider)
    provider.know("anna", **ANNA)
    assert is_in(log_in("anna").client)


def test_the_redirect_never_leads_to_another_site(oidc, provider, log_in):
    linked(provider)
    provider.know("anna", **ANNA)
    assert log_in("anna", next_url="https://evil.example/")["Location"] == "/"


def test_an_unknown_identity_gets_no_account(oidc, provider, log_in, caplog):
    provider.know("anna", **ANNA)

    answer = log_in("anna")

    assert answer.status_code == 403
    assert "There is no account here for anna." in answer.text
    assert not User.objects.exists()
    event = AuditEvent.objects.get(type="user-login-failed")
    assert (event.subject, event.after["how"], event.after["address"]) == ("anna", "provider", "127.0.0.1")
    assert caplog.messages[-1].startswith("Login failed from 127.0.0.1: the identity provider's anna: ")
    assert not AuditEvent.objects.filter(type="user-logged-in").exists()


def test_an_account_is_created_if_the_settings_say_so(oidc, provider, log_in):
    oidc(create_accounts=True, root_role="Viewer")
    provider.know("anna", **ANNA)

    assert is_in(log_in("anna").client)

    user = User.objects.get()
    assert (user.username, user.name, user.email) == ("anna", "Anna B", "anna@example.org")
    assert user.root_role_id == BuiltIn.VIEWER
    assert not user.has_usable_password()
    types = list(AuditEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["user-created", "user-identity-linked", "user-logged-in"]
    assert is_in(log_in("anna").client)
    assert User.objects.count() == 1


def test_an_address_that_is_not_verified_is_not_stored(oidc, provider, log_in):
    oidc(create_accounts=True)
    provider.know("anna", **ANNA | {"email_verified": False})
    log_in("anna")
    assert User.objects.get().email is None


def test_a_taken_name_creates_no_account(oidc, provider, log_in):
    oidc(create_accounts=True)
    make_user("Anna")
    provider.know("anna", **ANNA)

    answer = log_in("anna")

    assert answer.status_code == 403
    assert "User already exists: an account named anna." in answer.text
    assert not is_in(answer.client)


@pytest.mark.parametrize(
    ("setting", "verified", "status"), [(True, True, 302), (True, False, 403), (False, True, 403)]
)
def test_a_verified_address_links_only_if_the_settings_say_so(
    oidc, provider, log_in, setting, verified, status
):
    user = make_user("bertha", email="Anna@Example.org")
    oidc(link_by_email=setting)
    provider.know("anna", **ANNA | {"email_verified": verified})

    assert log_in("anna").status_code == status

    assert SocialAccount.objects.filter(user=user, uid="anna").exists() == (status == 302)


def test_an_address_links_one_identity_only(oidc, provider, log_in):
    user = make_user("bertha", email="anna@example.org")
    SocialAccount.objects.create(user=user, provider=provider.issuer, uid="another")
    oidc(link_by_email=True)
    provider.know("anna", **ANNA)
    assert log_in("anna").status_code == 403


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 302),
        ({"email": "anna@EXAMPLE.org"}, 302),
        ({"email": "anna@example.org.evil.example"}, 403),
        ({"email_verified": False}, 403),
        ({"email": None}, 403),
    ],
)
def test_addresses_of_other_domains_are_refused(oidc, provider, log_in, claims, status):
    linked(provider)
    oidc(email_domains=frozenset({"example.org"}))
    provider.know("anna", **ANNA | claims)
    assert log_in("anna").status_code == status


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_service": True}])
def test_a_disabled_account_stays_out(oidc, provider, log_in, change):
    user = linked(provider)
    User.objects.filter(pk=user.pk).update(**change)
    provider.know("anna", **ANNA)

    answer = log_in("anna")

    assert answer.status_code == 403
    assert "The account anna is disabled." in answer.text
    assert not is_in(answer.client)


def test_the_same_subject_of_another_provider_is_another_person(oidc, provider, log_in):
    user = make_user("anna")
    SocialAccount.objects.create(user=user, provider="https://old.example.org", uid="anna")
    provider.know("anna", **ANNA)
    assert log_in("anna").status_code == 403


def test_a_canceled_login_says_so(oidc, provider, log_in):
    answer = log_in("", cancel=True)
    assert answer.status_code == 403
    assert "did not let you in, or you canceled" in answer.text
    assert "The person has canceled" not in answer.text
    assert 'name="password"' in answer.text


def test_an_unknown_state_is_refused(client, oidc, caplog):
    answer = client.get("/login/sso/callback/?code=x&state=x")
    assert caplog.messages[-1].startswith("Login failed from 127.0.0.1: identity provider: ")
    assert answer.status_code == 400
    assert "started in another browser" in answer.text
    assert not AuditEvent.objects.exists()


def test_an_answer_works_once_and_in_its_own_browser(oidc, provider):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = Client()
    back = provider.answer(browser.get("/login/sso/")["Location"], "anna")

    assert Client().get(back).status_code == 400
    assert browser.get(back).status_code == 302
    browser.post("/logout/")
    assert browser.get(back).status_code == 400


def tampered(browser, name, value):
    """Changes what the session keeps of the login that has begun."""
    session = browser.session
    ((state, _, _),) = session["socialaccount_states"].values()
    assert name in state
    state[name] = value
    session.save()


@pytest.mark.parametrize("name", ["nonce", "pkce_code_verifier"])
def test_nonce_and_verifier_must_be_of_this_login(oidc, provider, name):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = Client()
    sent = browser.get("/login/sso/")
    tampered(browser, name, "x" * 43)

    answer = browser.get(provider.answer(sent["Location"], "anna"))

    assert answer.status_code == 502
    assert not is_in(browser)


def test_an_answer_of_another_issuer_is_refused(oidc, provider):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = Client()
    back = provider.answer(browser.get("/login/sso/")["Location"], "anna")
    assert "&iss=http" in back
    assert browser.get(back.replace("&iss=http", "&iss=https")).status_code == 502


def test_a_provider_whose_issuer_differs_is_refused(client, oidc, provider):
    oidc(issuer=provider.issuer.replace("127.0.0.1", "localhost"))
    assert client.get("/login/sso/").status_code == 502


def test_while_the_provider_is_down_passwords_work(client, oidc):
    make_user("anna", password=PASSWORD)
    with identity_provider("http://testserver") as other:
        pass  # it has ended
    oidc(issuer=other.issuer)

    answer = client.get("/login/sso/?next=/activity/")

    assert answer.status_code == 503
    assert "The identity provider cannot be reached." in answer.text
    assert 'name="next" value="/activity/"' in answer.text
    assert client.post("/login/", {"username": "anna", "password": PASSWORD}).status_code == 302


def test_a_provider_that_fails_during_the_login_is_reported(oidc, provider, monkeypatch):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = Client()
    back = provider.answer(browser.get("/login/sso/")["Location"], "anna")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nobody listens
    assert browser.get(back).status_code == 503
    assert not is_in(browser)


def test_whoever_is_logged_in_is_redirected(oidc, provider, log_in):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = log_in("anna").client
    assert browser.get("/login/sso/?next=/activity/")["Location"] == "/activity/"


def test_the_session_gets_a_new_key(oidc, provider):
    linked(provider)
    provider.know("anna", **ANNA)
    browser = Client()
    sent = browser.get("/login/sso/")
    before = browser.session.session_key
    browser.get(provider.answer(sent["Location"], "anna"))
    assert browser.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()


def test_groups_and_roles_of_earlier_logins_are_remembered(oidc, provider, log_in):
    oidc(groups_claim="groups", root_roles=(("devs", "Editor"),))
    user = linked(provider)
    make_group("devs")
    provider.know("anna", **ANNA, groups=["devs"])
    for _ in range(2):
        log_in("anna")
    user.refresh_from_db()
    assert (user.root_role_id, user.groups.count()) == (BuiltIn.EDITOR, 1)

    provider.know("anna", **ANNA, groups=[])
    log_in("anna")

    user.refresh_from_db()
    assert (user.root_role_id, user.groups.count()) == (None, 0)


def test_a_second_factor_is_asked_for_too(oidc, provider, log_in, standing_clock):
    user = linked(provider)
    user.set_password(PASSWORD)
    user.save()
    set_up_app(user)
    provider.know("anna", **ANNA)

    response = log_in("anna", next_url="/activity/")

    assert response["Location"] == "/login/code/"
    assert not is_in(response.client)
    assert user.password not in str(dict(response.client.session))
    answer = response.client.post("/login/code/", {"code": code_of()})
    assert answer["Location"] == "/activity/"
    assert is_in(answer.client)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "provider, authenticator app"}


def test_accounts_are_created_during_maintenance_too(oidc, provider, log_in):
    """An admin may have to log in to end it."""
    oidc(create_accounts=True)
    provider.know("anna", **ANNA)
    set_maintenance(True, caller=Caller.system())

    answer = log_in("anna")

    assert answer.status_code == 302
    assert is_in(answer.client)
