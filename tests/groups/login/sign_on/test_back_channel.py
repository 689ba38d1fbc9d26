"""The provider ends sessions: back-channel logout."""

import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.sign_on import pages
from groups.login.sign_on.settings import OidcSettings
from groups.models import User
from groups.sessions.store import PROVIDER_SESSION, read_sessions
from tests.groups.login.sign_on.keys import public
from tests.support.identity_provider import identity_provider

URL, ISSUER = "/login/sso/logout/", "https://login.example.org"
KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
LOGGED_OUT = {pages.EVENT: {}}


@pytest.fixture
def account(people: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> User:
    """The viewer, linked with the subject "anna"."""
    settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin", client_secret="s3cret")
    keys = {"keys": [public(KEY)]}
    monkeypatch.setattr(pages, "read_issuer_and_keys", lambda request: (ISSUER, keys))
    SocialAccount.objects.create(user=people["viewer"], provider=ISSUER, uid="anna")
    return people["viewer"]


def browser_of(user: User, session_id: str = "") -> Client:
    browser = Client()
    browser.force_login(user)
    if session_id:
        read_sessions(user).filter(session_key=browser.session.session_key).update(
            data={PROVIDER_SESSION: session_id}
        )
    return browser


def is_logged_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def token(key: Any = KEY, **claims: Any) -> str:
    now = int(time.time())
    good = {"iss": ISSUER, "aud": "flagadmin", "iat": now, "exp": now + 120, "jti": "1", "events": LOGGED_OUT}
    values = {name: value for name, value in (good | claims).items() if value is not None}
    return jwt.encode(values, key, algorithm="ES256", headers={"kid": "one"})


def send(logout_token: str) -> Any:
    return Client(enforce_csrf_checks=True).post(URL, {"logout_token": logout_token})


def test_a_token_for_a_person_ends_all_their_sessions(account: User, people: Any) -> None:
    browsers, other = [browser_of(account), browser_of(account, "s-1")], browser_of(people["admin"])
    response = send(token(sub="anna"))
    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert [is_logged_in(browser) for browser in [*browsers, other]] == [False, False, True]
    assert AuditEvent.objects.filter(type="user-logged-out-everywhere", subject=account.username).exists()


def test_a_token_for_a_session_ends_this_session_only(account: User) -> None:
    first, second = browser_of(account, "s-1"), browser_of(account, "s-2")
    assert send(token(sub="anna", sid="s-1")).status_code == 200
    assert [is_logged_in(first), is_logged_in(second)] == [False, True]
    assert send(token(sid="s-2")).status_code == 200
    assert not is_logged_in(second)


def test_an_unknown_session_ends_all_sessions_of_the_person(account: User) -> None:
    """It began before sessions kept the provider's id."""
    browser = browser_of(account)
    assert send(token(sub="anna", sid="s-9")).status_code == 200
    assert not is_logged_in(browser)


@pytest.mark.parametrize("claims", [{"sub": "nobody"}, {"sid": "s-9"}])
def test_a_token_without_sessions_to_end_is_answered_with_200(account: User, claims: dict[str, str]) -> None:
    browser = browser_of(account)
    assert send(token(**claims)).status_code == 200
    assert is_logged_in(browser)


@pytest.mark.parametrize(
    ("key", "claims"),
    [
        (OTHER, {}),
        (KEY, {"iss": "https://evil.example"}),
        (KEY, {"aud": "other"}),
        (KEY, {"exp": 1}),
        (KEY, {"iat": None}),
        (KEY, {"iat": int(time.time()) - pages.MAX_AGE - 60, "exp": None}),
        (KEY, {"jti": None}),
        (KEY, {"events": None}),
        (KEY, {"events": {}}),
        (KEY, {"events": [pages.EVENT]}),
        (KEY, {"nonce": "n"}),
        (KEY, {"sub": None}),
        (KEY, {"sub": 7}),
        (KEY, {"sub": "\ud800"}),
        (KEY, {"sid": "\0"}),
        (KEY, {"sid": ["s-1"]}),
    ],
)
def test_other_tokens_end_nothing(account: User, key: Any, claims: dict[str, Any]) -> None:
    browser = browser_of(account, "s-1")
    response = send(token(key, **{"sub": "anna"} | claims))
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert is_logged_in(browser)


@pytest.mark.parametrize("sent", ["", "nonsense", "a.b.c"])
def test_values_that_are_no_token_are_refused(account: User, sent: str) -> None:
    assert send(sent).status_code == 400


def test_without_a_provider_the_page_is_404(db: None) -> None:
    assert send("").status_code == 404
    assert Client().get(URL).status_code in (404, 405)


def test_keys_are_kept_for_a_while(settings: Any, monkeypatch: pytest.MonkeyPatch, rf: Any) -> None:
    fetched = []

    def fetch(endpoints: Any) -> dict[str, Any]:
        fetched.append(endpoints)
        return {"keys": []}

    settings.SIGN_ON = OidcSettings(issuer="https://keys.example.org", client_id="flagadmin")
    monkeypatch.setattr(
        "groups.login.sign_on.provider.Endpoints.openid_config", {"issuer": "https://keys.example.org/"}
    )
    monkeypatch.setattr("groups.login.sign_on.provider.Endpoints.fetch_keys", fetch)
    for _ in range(3):
        assert pages.read_issuer_and_keys(rf.post(URL)) == ("https://keys.example.org/", {"keys": []})
    assert len(fetched) == 1


@pytest.fixture
def real_provider(live_server: Any, settings: Any) -> Iterator[Any]:
    with identity_provider(live_server.url) as running:
        settings.SIGN_ON = OidcSettings(issuer=running.issuer, client_id="flagadmin", client_secret="s3cret")
        yield running


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_logging_out_at_the_provider_ends_the_session_here(
    live_server: Any, real_provider: Any, people: Any
) -> None:
    SocialAccount.objects.create(user=people["viewer"], provider=real_provider.issuer, uid="ada")
    real_provider.know("ada", preferred_username="ada")
    with requests.Session() as browser, requests.Session() as at_provider:
        sent = browser.get(f"{live_server.url}/login/sso/", allow_redirects=False)
        browser.get(real_provider.answer(sent.headers["Location"], "ada", browser=at_provider))
        account = f"{live_server.url}/account/"
        assert browser.get(account, allow_redirects=False).status_code == 200
        [session] = read_sessions(people["viewer"])
        assert session.data[PROVIDER_SESSION]
        real_provider.log_out(at_provider)
        assert browser.get(account, allow_redirects=False).status_code == 302
