"""FLAGADMIN_OIDC_… and FLAGADMIN_PASSWORD_LOGIN."""

import os

import pytest
from django.core.exceptions import ImproperlyConfigured

from groups.login.sign_on.settings import OidcSettings, password_login, read_sign_on_settings

BASE = {"ISSUER": "https://login.example.org/realms/work/", "CLIENT_ID": "flagadmin"}


@pytest.fixture
def given(monkeypatch):
    for name in [name for name in os.environ if name.startswith("FLAGADMIN_OIDC_")]:
        monkeypatch.delenv(name)

    def give(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(f"FLAGADMIN_OIDC_{name}", value)

    return give


def test_off_by_default(given):
    assert read_sign_on_settings() is None
    assert password_login(None)
    given(ISSUER="", BUTTON=" ")
    assert read_sign_on_settings() is None


def test_issuer_and_client_id_are_enough(given):
    given(**BASE)
    assert read_sign_on_settings() == OidcSettings(
        issuer="https://login.example.org/realms/work", client_id="flagadmin"
    )


def test_all_settings_are_read(given):
    given(
        **BASE,
        CLIENT_SECRET="s3cret",
        SCOPES="openid email, groups",
        BUTTON="Log in with Example",
        CREATE_ACCOUNTS="1",
        ROOT_ROLE="Viewer",
        EMAIL_DOMAINS="Example.org, example.com",
        TRUST_EMAIL="1",
        LINK_BY_EMAIL="1",
        GROUPS_CLAIM="groups",
        ROOT_ROLES="ops=Admin, cn=dev=Editor",
    )
    assert read_sign_on_settings() == OidcSettings(
        issuer="https://login.example.org/realms/work",
        client_id="flagadmin",
        client_secret="s3cret",
        scopes=("openid", "email", "groups"),
        button="Log in with Example",
        create_accounts=True,
        root_role="Viewer",
        email_domains=frozenset({"example.org", "example.com"}),
        trust_email=True,
        link_by_email=True,
        groups_claim="groups",
        root_roles=(("ops", "Admin"), ("cn=dev", "Editor")),
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CLIENT_ID": "x"}, "FLAGADMIN_OIDC_CLIENT_ID is set, so FLAGADMIN_OIDC_ISSUER must be set too."),
        ({"ISSUER": "https://a.example"}, "so FLAGADMIN_OIDC_CLIENT_ID must be set too."),
        ({"BUTTON": "x"}, "FLAGADMIN_OIDC_ISSUER and FLAGADMIN_OIDC_CLIENT_ID must be set too."),
        (BASE | {"ISSUER": "http://login.example.org"}, "FLAGADMIN_OIDC_ISSUER must be the provider's URL"),
        (BASE | {"ISSUER": "login.example.org"}, "FLAGADMIN_OIDC_ISSUER must be the provider's URL"),
        (BASE | {"ISSUER": "https://a.example/?x"}, "FLAGADMIN_OIDC_ISSUER must be the provider's URL"),
        (BASE | {"SCOPES": "email"}, "FLAGADMIN_OIDC_SCOPES must contain openid."),
        (BASE | {"ROOT_ROLES": "ops=Admin"}, "so FLAGADMIN_OIDC_GROUPS_CLAIM must be set too"),
        (BASE | {"GROUPS_CLAIM": "g", "ROOT_ROLES": "ops"}, "FLAGADMIN_OIDC_ROOT_ROLES must be like"),
        (BASE | {"CREATE_ACCOUNTS": "maybe"}, "FLAGADMIN_OIDC_CREATE_ACCOUNTS must be 1 or 0"),
    ],
)
def test_an_incomplete_provider_is_refused(given, variables, message):
    given(**variables)
    with pytest.raises(ImproperlyConfigured) as refusal:
        read_sign_on_settings()
    assert message in str(refusal.value)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:8080", "http://localhost/x", "http://[::1]:1"])
def test_http_is_allowed_on_this_machine(given, issuer):
    given(**BASE | {"ISSUER": issuer})
    assert read_sign_on_settings().issuer == issuer


def test_the_address_of_the_configuration_names_the_issuer(given):
    given(**BASE | {"ISSUER": "https://a.example/x/.well-known/openid-configuration"})
    assert read_sign_on_settings().issuer == "https://a.example/x"


def test_passwords_are_only_turned_off_with_a_provider(given, monkeypatch):
    monkeypatch.setenv("FLAGADMIN_PASSWORD_LOGIN", "off")
    with pytest.raises(ImproperlyConfigured, match="nobody could log in"):
        password_login(None)
    given(**BASE)
    assert not password_login(read_sign_on_settings())
