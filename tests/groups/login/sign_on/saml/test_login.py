"""Logging in through a real SAML identity provider."""

import re

import pytest
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from lxml import etree

from flagadmin.core.audit.models import AuditEvent
from groups.models import User
from groups.permissions import BuiltIn
from tests.groups.login.sign_on.saml.conftest import CALLBACK, is_in, read_form
from tests.support.cast import make_group, make_user
from tests.support.saml_provider import request_of
from tests.support.second_factor import code_of, set_up_app

pytestmark = pytest.mark.processes
ANNA = {"username": "anna", "name": "Anna B", "email": "anna@example.org"}
PASSWORD = "correct horse battery"


def linked(provider, name="anna", **more):
    user = make_user(name, **more)
    SocialAccount.objects.create(user=user, provider=provider.issuer, uid=name)
    return user


def test_without_saml_there_is_no_metadata_and_no_place_for_answers(client, db):
    assert client.get("/login/sso/metadata/").status_code == 404
    assert client.post(CALLBACK, {"SAMLResponse": "x"}).status_code == 404


def test_the_request_names_who_asks_and_where_the_answer_goes(client, saml, provider):
    assert "Log in with Example" in client.get("/login/").text
    sent = client.get("/login/sso/?next=/activity/")["Location"]
    relay_state, request = request_of(sent)
    assert sent.startswith(f"{provider.url}/sso?SAMLRequest=")
    assert re.fullmatch("_[0-9a-f]{40}", request.get("ID"))
    assert relay_state == request.get("ID")
    assert request.get("Destination") == f"{provider.url}/sso"
    assert request.get("AssertionConsumerServiceURL") == f"http://testserver{CALLBACK}"
    assert request.findtext("{*}Issuer") == "http://testserver/login/sso/metadata/"


def test_metadata_say_the_same(client, saml, settings):
    settings.PUBLIC_URL = "https://x&y"
    page = client.get("/login/sso/metadata/")
    described = etree.fromstring(page.content)
    assert page["Content-Type"] == "application/samlmetadata+xml"
    assert described.get("entityID") == "https://x&y/login/sso/metadata/"
    assert described.find(".//{*}AssertionConsumerService").get("Location") == f"https://x&y{CALLBACK}"


@pytest.mark.parametrize(
    "signed", [{}, {"signResponse": True}, {"signResponse": True, "signAssertion": False}], ids=str
)
def test_a_linked_account_logs_in_and_goes_on(provider, begin, signed):
    linked(provider)
    provider.know("anna", **ANNA)
    provider.behave(**signed)
    login = begin("anna", start="/login/sso/?next=/activity/%3Fx%3D1")

    answer = login.send()

    assert (answer.status_code, answer["Location"]) == (302, "/activity/?x=1")
    assert is_in(login.browser)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "provider"}
    assert SocialAccount.objects.get().extra_data == {"label": "anna"}


def test_an_account_is_created_with_groups_and_a_role(provider, saml, begin):
    saml(
        create_accounts=True,
        trust_email=True,
        groups_claim="http://schemas.example/groups",
        root_roles=(("ops", "Admin"),),
    )
    group = make_group("devs")
    provider.know("1", **ANNA | {"http://schemas.example/groups": ["devs", "ops", "others"]})
    assert begin("1").send().status_code == 302

    user = User.objects.get()
    assert (user.username, user.name, user.email) == ("anna", "Anna B", "anna@example.org")
    assert user.root_role_id == BuiltIn.ADMIN
    assert [g.pk for g in user.groups.all()] == [group.pk]
    assert not user.has_usable_password()
    make_user("another-admin", root_role=BuiltIn.ADMIN)
    provider.know("1", **ANNA)
    assert begin("1").send().status_code == 302
    user.refresh_from_db()
    assert (user.root_role_id, user.groups.count()) == (None, 0)


def test_without_a_user_name_the_name_id_is_the_name(provider, saml, begin):
    saml(create_accounts=True)
    provider.know("anna@example.org")
    begin("anna@example.org").send()
    assert User.objects.get().username == "anna@example.org"


@pytest.mark.parametrize(
    ("attributes", "changes", "told"),
    [
        ({"username": "eve"}, {}, "There is no account here for eve."),
        ({"email": "anna@example.org"}, {"link_by_email": True}, "verified (FLAGADMIN_SAML_TRUST_EMAIL)."),
        (
            {"mail": "anna@example.org"},
            {"email_domains": frozenset({"example.org"})},
            "(attribute email); it sends mail, and FLAGADMIN_SAML_EMAIL_ATTRIBUTE can name one of them",
        ),
        (
            {"email": "anna@example.com"},
            {"trust_email": True, "email_domains": frozenset({"x.org"})},
            "x.org",
        ),
        (
            {"http://schemas.microsoft.com/claims/groups.link": "https://graph.example"},
            {"groups_claim": "groups"},
            "more groups than the identity provider sends",
        ),
        (None, {}, "The identity provider did not let you in"),
    ],
)
def test_others_are_refused_with_the_reason(provider, saml, begin, attributes, changes, told):
    make_user("anna", email="anna@example.org")
    saml(**changes)
    if attributes is not None:
        provider.know("nobody", **attributes)
    page = (login := begin("nobody" if attributes is not None else "unknown")).send()
    assert page.status_code == 403
    assert told in page.text
    assert not is_in(login.browser)
    assert User.objects.count() == 1


def test_disabled_people_stay_out(provider, begin):
    linked(provider, is_active=False)
    provider.know("anna", **ANNA)
    page = begin("anna").send()
    assert "is disabled" in page.text
    assert AuditEvent.objects.get(type="user-login-failed").after["how"] == "provider"


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ({}, ANNA),
        ({"name_attribute": "shown", "email_claim": "name"}, {"name": ANNA["email"], "shown": "eve@x.org"}),
        ({"email_claim": "sub"}, {"sub": ANNA["email"]}),
        ({"email_claim": "preferred_username"}, {"preferred_username": ANNA["email"], "username": "e@x.org"}),
    ],
)
def test_linking_by_email(provider, saml, begin, chosen, sent):
    saml(link_by_email=True, trust_email=True, **chosen)
    user = make_user("Anna", email="anna@example.org")
    provider.know("7", **sent)
    begin("7").send()
    assert SocialAccount.objects.get().user == user


def test_linking_by_hand_and_unlinking(provider, begin):
    user = make_user("ann", password=PASSWORD)
    provider.know("anna", **ANNA)
    browser = Client()
    browser.post("/login/", {"username": "ann", "password": PASSWORD})
    assert provider.issuer in browser.get("/account/").text
    start = re.search(r'href="(/account/sign-on/link/[^"]+)"', browser.get("/account/").text)[1]

    begin("anna", start=start, browser=browser).send()

    assert SocialAccount.objects.get().user == user
    assert "You log in as <strong>anna</strong>" in browser.get("/account/").text
    browser.post("/account/sign-on/unlink/")
    assert not SocialAccount.objects.exists()


def test_a_second_factor_is_asked_for(provider, begin):
    set_up_app(linked(provider))
    provider.know("anna", **ANNA)
    login = begin("anna", start="/login/sso/?next=/activity/")
    assert login.send()["Location"] == "/login/code/"
    assert not is_in(login.browser)
    assert login.browser.post("/login/code/", {"code": code_of()})["Location"] == "/activity/"
    assert is_in(login.browser)


def test_a_click_at_the_provider_begins_a_login_here(provider, begin, client):
    """An answer to no request logs nobody in: it could be an attacker's."""
    linked(provider)
    provider.know("anna", **ANNA)
    url = f"{provider.url}/sso?AssertionConsumerServiceURL=http://testserver{CALLBACK}"
    provider.behave(audience="http://testserver/login/sso/metadata/")
    form = provider.answer(url, "anna")
    assert client.post(CALLBACK, form)["Location"] == "/login/sso/"
    assert not is_in(client)
    # A provider that forgets the request would send browsers round for ever.
    again = client.post(CALLBACK, form | {"RelayState": "_" + "0" * 40})
    assert again.status_code == 400


def test_an_answer_is_taken_once_and_by_the_browser_that_asked(provider, begin):
    linked(provider)
    provider.know("anna", **ANNA)
    login = begin("anna")
    form = read_form(Client().post(CALLBACK, login.form))
    other = Client()
    assert "This login started in another browser" in other.post(CALLBACK, form).text
    assert not is_in(other)
    assert login.browser.post(CALLBACK, form).status_code == 302
    assert is_in(login.browser)
    login.browser.post("/logout/")
    assert login.browser.post(CALLBACK, form).status_code == 400
    assert not is_in(login.browser)


def test_a_request_waits_for_ten_minutes(provider, begin, monkeypatch):
    linked(provider)
    provider.know("anna", **ANNA)
    login = begin("anna")
    monkeypatch.setattr(statekit, "STATE_TTL", -1)
    assert login.send().status_code == 400
    assert not is_in(login.browser)


def test_another_certificate_of_the_provider_counts_too(provider, saml, begin, settings):
    from cryptography.x509 import load_pem_x509_certificate

    from tests.support.saml_provider import Signer

    next_one = load_pem_x509_certificate(Signer.new().certificate)
    saml(certificates=(next_one, *settings.SIGN_ON.certificates))
    linked(provider)
    provider.know("anna", **ANNA)
    assert begin("anna").send().status_code == 302


def test_the_page_of_statistics_names_it(provider, saml, client):
    admin = make_user("root", root_role=BuiltIn.ADMIN)
    client.force_login(admin)
    counts = client.get("/api/admin/instance-admin/statistics").json()
    assert (counts["SAMLenabled"], counts["OIDCenabled"]) == (True, False)
