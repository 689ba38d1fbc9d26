"""A SAML provider for the tests of this folder, and browsers that log in with it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography.x509 import load_pem_x509_certificate
from django.test import Client

from groups.login.sign_on.settings import SamlSettings
from tests.support.saml_provider import SamlProvider, saml_provider

CALLBACK = "/login/sso/callback/"


@pytest.fixture(scope="package")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SamlProvider]:
    with saml_provider(tmp_path_factory.mktemp("saml")) as running:
        yield running


@pytest.fixture
def saml(provider: SamlProvider, settings: Any, db: None) -> Callable[..., None]:
    """Turns logins through the provider on. Called again, it changes their settings."""
    settings.PUBLIC_URL = "http://testserver"
    settings.SIGN_ON = SamlSettings(
        issuer=provider.issuer,
        url=f"{provider.url}/sso",
        certificates=(load_pem_x509_certificate(provider.signer.certificate),),
        button="Log in with Example",
    )
    provider.behave()

    def change(**changes: Any) -> None:
        settings.SIGN_ON = replace(settings.SIGN_ON, **changes)

    return change


@dataclass(frozen=True)
class Login:
    """A login under way: the browser that began it, and the provider's form."""

    browser: Client
    form: dict[str, str]

    def send(self, **changes: str) -> Any:
        """The last page. As browsers do, it sends no cookie with a form of another site."""
        answer = Client().post(CALLBACK, self.form | changes)
        assert "sessionid" not in answer.cookies  # it would end the session of the browser
        return self.browser.post(CALLBACK, read_form(answer)) if answer.status_code == 200 else answer


def read_form(page: Any) -> dict[str, str]:
    """What the page that came sends back by itself."""
    assert "data-submit-now" in page.text
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))


@pytest.fixture
def begin(provider: SamlProvider, saml: Any) -> Callable[..., Login]:
    def to_provider(name: str, *, start: str = "/login/sso/", browser: Client | None = None) -> Login:
        browser = browser or Client()
        return Login(browser, provider.answer(browser.get(start)["Location"], name))

    return to_provider


def is_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200
