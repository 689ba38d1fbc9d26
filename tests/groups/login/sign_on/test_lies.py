"""An identity provider that lies or is slow logs nobody in, and is no fault of ours."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.db import transaction
from django.test import Client

from groups.login.sign_on import provider
from groups.login.sign_on.provider import Endpoints, ProviderSession
from groups.login.sign_on.settings import OidcSettings
from groups.models import User
from tests.attack.lying_provider import (
    CLIENT,
    CLIENT_SECRET,
    CONFIGS,
    LIES,
    MAY_BE_TRUE,
    TOKEN,
    Liar,
    lying_provider,
)


@pytest.fixture(scope="module")
def liars() -> Iterator[Liar]:
    with lying_provider() as running:
        yield running


@pytest.fixture
def liar(liars: Liar, db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Liar]:
    settings.SIGN_ON = OidcSettings(
        issuer=liars.issuer,
        client_id=CLIENT,
        client_secret=CLIENT_SECRET,
        create_accounts=True,
        groups_claim="groups",
    )
    monkeypatch.setattr(provider, "MAX_SECONDS", 0.5)
    yield liars
    liars.lie = ""


def log_in(liar: Liar) -> Any:
    """The last answer. Its ``client`` is the browser."""
    browser = Client(raise_request_exception=False)
    sent = browser.get("/login/sso/")
    if sent.status_code != 302:
        return sent
    parameters = parse_qs(urlsplit(sent["Location"]).query)
    liar.nonce = parameters["nonce"][0]
    return browser.get(f"/login/sso/callback/?{urlencode({'code': 'c', 'state': parameters['state'][0]})}")


def is_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def test_a_valid_answer_logs_in(liar: Liar) -> None:
    answer = log_in(liar)
    assert (answer.status_code, is_in(answer.client)) == (302, True)


def outcome_of(liar: Liar, lie: str) -> tuple[int, bool, bool]:
    """The status of the last answer, whether somebody is in, and whether there is an account."""
    liar.lie = lie
    with transaction.atomic():
        answer = log_in(liar)
        outcome = answer.status_code, is_in(answer.client), User.objects.exists()
        transaction.set_rollback(True)
    return outcome


def test_invalid_answers_are_refused(liar: Liar) -> None:
    outcomes = {lie: outcome_of(liar, lie) for lie in LIES if lie not in MAY_BE_TRUE}
    refused = {(status, False, False) for status in (400, 502, 503)}
    faults = {lie: outcome for lie, outcome in outcomes.items() if outcome not in refused}
    assert not faults, faults


def test_unusual_valid_answers_fail_nothing(liar: Liar) -> None:
    statuses = {lie: outcome_of(liar, lie)[0] for lie in sorted(MAY_BE_TRUE)}
    faults = {lie: status for lie, status in statuses.items() if status not in (302, 400, 403, 502)}
    assert not faults, faults


def test_redirects_are_not_followed(liar: Liar) -> None:
    liar.lie = "keys: redirect"
    with pytest.raises(OAuth2Error, match="a redirect to http"), ProviderSession() as session:
        session.get(f"{liar.issuer}/keys")


@pytest.mark.parametrize("lie", ["token: status", "token: without an access token", "token: refused"])
def test_no_token_gets_into_the_log(liar: Liar, lie: str, caplog: pytest.LogCaptureFixture) -> None:
    liar.lie = lie
    assert log_in(liar).status_code in (502, 503)
    assert "The identity provider" in caplog.text
    assert TOKEN not in caplog.text
    assert ("eyJ" in caplog.text, "invalid_grant" in caplog.text) == (False, lie == "token: refused")


def test_callers_beyond_the_limit_do_not_wait(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = provider.threading.BoundedSemaphore(1)
    monkeypatch.setattr(provider, "_slots", slots)
    with slots:
        assert log_in(liar).status_code == 503
        with pytest.raises(requests.ConnectionError), ProviderSession() as session:
            session.get(f"{liar.issuer}/keys")
    assert log_in(liar).status_code == 302


def test_logins_do_not_wait_for_each_others_requests(
    liar: Liar, monkeypatch: pytest.MonkeyPatch, rf: Any
) -> None:
    together, ask = threading.Barrier(2, timeout=30), ProviderSession.request

    def both(*args: Any, **kwargs: Any) -> requests.Response:
        together.wait()
        return ask(*args, **kwargs)

    monkeypatch.setattr(ProviderSession, "request", both)
    with ThreadPoolExecutor(2) as callers:
        read = callers.map(lambda _: Endpoints(rf.get("/"), liar.issuer).openid_config["issuer"], range(2))
        assert set(read) == {liar.issuer}


def test_a_failed_request_frees_its_slot(liar: Liar) -> None:
    liar.lie = next(iter(CONFIGS))
    for _ in range(provider.MAX_AT_ONCE + 1):
        assert log_in(liar).status_code == 502
    liar.lie = "config: cut"
    for _ in range(provider.MAX_AT_ONCE + 1):
        assert log_in(liar).status_code == 503
