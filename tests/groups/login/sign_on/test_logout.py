"""Logging out here logs out at the identity provider: RP-initiated logout."""

from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from groups.login.sign_on import pages
from groups.login.sign_on.settings import OidcSettings
from groups.sessions.store import ID_TOKEN
from tests.support.cast import make_user

ISSUER, END = "https://login.example.org", "https://login.example.org/end"


@pytest.fixture
def browser(settings, db, monkeypatch):
    """Of somebody who came through the provider."""
    settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin", logout=True)
    monkeypatch.setattr(pages, "_read_endpoint", lambda request: END)
    browser = Client()
    browser.force_login(make_user("anna"))
    session = browser.session
    session[ID_TOKEN] = "the.id.token"
    session.save()
    return browser


def is_in(browser):
    return browser.get("/account/").status_code == 200


def test_the_session_here_ends_and_the_page_leads_to_the_provider(browser):
    answer = browser.post("/logout/")
    assert not is_in(browser)
    assert answer["Refresh"].startswith(f"0; url={END}?")
    query = parse_qs(urlsplit(answer["Refresh"].partition("url=")[2]).query)
    assert query == {
        "client_id": ["flagadmin"],
        "post_logout_redirect_uri": ["http://testserver/login/"],
        "id_token_hint": ["the.id.token"],
    }
    assert "Go on to the identity provider" in answer.content.decode()


@pytest.mark.parametrize("why", ["off", "no provider", "a password", "no end_session_endpoint"])
def test_otherwise_only_the_session_here_ends(browser, settings, monkeypatch, why):
    if why == "off":
        settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin")
    elif why == "no provider":
        settings.SIGN_ON = None
    elif why == "a password":
        session = browser.session
        del session[ID_TOKEN]
        session.save()
    else:
        monkeypatch.setattr(pages, "_read_endpoint", lambda request: "")
    answer = browser.post("/logout/")
    assert (answer.status_code, answer["Location"]) == (302, "/login/")
    assert not is_in(browser)


@pytest.mark.parametrize(
    "published",
    [None, 5, "", "javascript:alert(1)", "http://login.example.org/end", "https://a\nb", "//evil.example"],
)
def test_what_is_no_url_of_the_provider_is_not_followed(browser, monkeypatch, published):
    from groups.login.sign_on.provider import Endpoints

    monkeypatch.undo()
    monkeypatch.setattr(Endpoints, "openid_config", {"end_session_endpoint": published})
    assert browser.post("/logout/")["Location"] == "/login/"
    assert not is_in(browser)


def test_a_provider_that_cannot_be_reached_keeps_nobody_in(browser, monkeypatch):
    from groups.login.sign_on.provider import ProviderSession

    def refuse(*args, **kwargs):
        raise requests.ConnectionError

    monkeypatch.undo()
    monkeypatch.setattr(ProviderSession, "request", refuse)
    assert browser.post("/logout/")["Location"] == "/login/"
    assert not is_in(browser)


@pytest.mark.processes
def test_a_real_provider_ends_its_session_and_leads_back(oidc, provider, log_in):
    oidc(logout=True)
    SocialAccount.objects.create(user=make_user("anna"), provider=provider.issuer, uid="anna")
    provider.know("anna", preferred_username="anna")
    browser = log_in("anna").client
    url = browser.post("/logout/")["Refresh"].partition("url=")[2]
    asked = requests.get(url, timeout=60)
    assert asked.status_code == 200
    assert "/session/end/confirm" in asked.text
    oidc(logout=False)
    assert ID_TOKEN not in log_in("anna").client.session
