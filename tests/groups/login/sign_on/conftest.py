"""A provider for the tests of this folder, and a browser that logs in with it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from groups.login.sign_on.settings import OidcSettings
from tests.support.identity_provider import IdentityProvider, identity_provider


@pytest.fixture(scope="package")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider("http://testserver") as running:
        yield running


@pytest.fixture
def oidc(provider: IdentityProvider, settings: Any, db: None) -> Callable[..., None]:
    """Turns logins through the provider on. Called again, it changes their settings."""
    settings.SIGN_ON = OidcSettings(
        issuer=provider.issuer,
        client_id="flagadmin",
        client_secret="s3cret",
        scopes=("openid", "profile", "email", "groups"),
        button="Log in with Example",
    )

    def change(**changes: Any) -> None:
        settings.SIGN_ON = replace(settings.SIGN_ON, **changes)

    return change


@pytest.fixture
def log_in(provider: IdentityProvider) -> Callable[..., Any]:
    """Logs in through the provider with a new browser, which is the response's ``client``."""

    def through(name: str, *, next_url: str = "", cancel: bool = False, browser: Client | None = None) -> Any:
        browser = browser or Client()
        sent = browser.get("/login/sso/", {"next": next_url})
        return browser.get(provider.answer(sent["Location"], name, cancel=cancel))

    return through
