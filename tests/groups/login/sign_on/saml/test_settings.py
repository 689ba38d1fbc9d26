"""FLAGADMIN_SAML_…"""

import os
import sys
import warnings
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509 import load_pem_x509_certificate
from django.core.exceptions import ImproperlyConfigured

from groups.login.sign_on.settings import SamlSettings, password_login, read_sign_on_settings
from tests.support.saml_provider import Signer


def in_metadata(signer: Signer) -> str:
    return b"".join(signer.certificate.splitlines()[1:-1]).decode()


SIGNER = Signer.new()
DER = in_metadata(SIGNER)
KEY = f"<KeyDescriptor use='signing'><KeyInfo xmlns='http://www.w3.org/2000/09/xmldsig#'><X509Data><X509Certificate>{DER}</X509Certificate></X509Data></KeyInfo></KeyDescriptor>"
SERVICE = '<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://login.example.org/sso"/>'
PROVIDER = f"<IDPSSODescriptor>{KEY}{SERVICE.replace('Redirect', 'POST').replace('/sso', '/post')}{SERVICE}</IDPSSODescriptor>"
METADATA = f'<!-- of Example --><EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://login.example.org">{PROVIDER}</EntityDescriptor>'


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Sets variables without FLAGADMIN_SAML_. The value of METADATA is what its file has."""
    for name in [name for name in os.environ if name.startswith(("FLAGADMIN_OIDC_", "FLAGADMIN_SAML_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLAGADMIN_PUBLIC_URL", "https://flags.example.org")

    def give(**variables: str) -> None:
        for name, value in variables.items():
            if name == "METADATA" and not value.startswith("/"):
                (tmp_path / name).write_text(value)
                value = str(tmp_path / name)
            monkeypatch.setenv(f"FLAGADMIN_SAML_{name}", value)

    return give


def test_the_metadata_are_enough(given):
    given(METADATA=METADATA)
    certificate = load_pem_x509_certificate(SIGNER.certificate)
    assert read_sign_on_settings() == SamlSettings(
        issuer="https://login.example.org", url="https://login.example.org/sso", certificates=(certificate,)
    )


def test_all_settings_are_read(given, monkeypatch):
    given(
        METADATA=METADATA, BUTTON="Log in with Example", CREATE_ACCOUNTS="1", ROOT_ROLE="Viewer",
        EMAIL_DOMAINS="Example.org", EMAIL_ATTRIBUTE="mail", TRUST_EMAIL="1", LINK_BY_EMAIL="1", GROUPS_ATTRIBUTE="memberOf",
        ROOT_ROLES="ops=Admin", USERNAME_ATTRIBUTE="uid", NAME_ATTRIBUTE="cn",
    )  # fmt: skip
    assert read_sign_on_settings() == SamlSettings(
        issuer="https://login.example.org",
        url="https://login.example.org/sso",
        certificates=(load_pem_x509_certificate(SIGNER.certificate),),
        button="Log in with Example",
        create_accounts=True,
        root_role="Viewer",
        email_domains=frozenset({"example.org"}),
        email_claim="mail",
        trust_email=True,
        link_by_email=True,
        groups_claim="memberOf",
        root_roles=(("ops", "Admin"),),
        username_attribute="uid",
        name_attribute="cn",
    )
    monkeypatch.setenv("FLAGADMIN_PASSWORD_LOGIN", "off")
    assert not password_login(read_sign_on_settings())


WEAK = in_metadata(Signer.new(bits=1024))


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"BUTTON": "x"}, "FLAGADMIN_SAML_BUTTON is set, so FLAGADMIN_SAML_METADATA must be set too."),
        ({"METADATA": "/nowhere"}, "FLAGADMIN_SAML_METADATA: /nowhere describes no usable provider: Error reading file '/nowhere'"),
        ({"METADATA": "{}"}, "describes no usable provider: Start tag expected"),
        ({"METADATA": METADATA.replace("IDPSSO", "SPSSO")}, "it has 0 elements IDPSSODescriptor"),
        ({"METADATA": METADATA.replace(PROVIDER, PROVIDER * 2)}, "it has 2 elements IDPSSODescriptor"),
        ({"METADATA": METADATA.replace(".org\">", ".org" + "x" * 200 + "\">")}, "its entityID must have 1 to 200 characters"),
        ({"METADATA": METADATA.replace(SERVICE, "")}, "its SingleSignOnService with HTTP-Redirect must be an HTTPS URL, not ''"),
        ({"METADATA": METADATA.replace("https:", "http:")}, "must be an HTTPS URL, not 'http://login.example.org/sso'"),
        ({"METADATA": METADATA.replace("signing", "encryption")}, "it must have certificates for signatures"),
        ({"METADATA": METADATA.replace(DER, DER[:99])}, "describes no usable provider: "),
        ({"METADATA": METADATA.replace(DER, WEAK)}, "its RSA keys must have at least 2048 bits"),
        ({"METADATA": METADATA, "ROOT_ROLES": "ops=Admin"}, "so FLAGADMIN_SAML_GROUPS_ATTRIBUTE must be set too: the attribute with"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_with_their_place(given, variables, message):
    given(**variables)
    with pytest.raises(ImproperlyConfigured) as refusal:
        read_sign_on_settings()
    assert message in str(refusal.value)


def test_there_is_one_provider_and_one_address(given, monkeypatch):
    given(METADATA=METADATA)
    monkeypatch.setenv("FLAGADMIN_OIDC_ISSUER", "https://login.example.org")
    with pytest.raises(ImproperlyConfigured, match="there is one provider"):
        read_sign_on_settings()
    monkeypatch.delenv("FLAGADMIN_OIDC_ISSUER")
    monkeypatch.delenv("FLAGADMIN_PUBLIC_URL")
    with pytest.raises(ImproperlyConfigured, match="so FLAGADMIN_PUBLIC_URL must be set too"):
        read_sign_on_settings()


def test_without_its_packages_the_command_that_installs_them_is_named(given, monkeypatch):
    given(METADATA=METADATA)
    monkeypatch.setitem(sys.modules, "signxml", None)
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'flagadmin\[saml\]'"):
        read_sign_on_settings()


def test_a_warning_precedes_the_end_of_the_last_certificate(given):
    signers = [Signer.new(days=days) for days in (-1, 20, 40)]
    keys = [KEY.replace(DER, in_metadata(signer)) for signer in signers]
    given(METADATA=METADATA.replace(KEY, "".join(keys)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_sign_on_settings().certificates) == 3
    given(METADATA=METADATA.replace(KEY, "".join(keys[:2])))
    day = datetime.now(UTC) + timedelta(days=20)
    with pytest.warns(UserWarning, match=f"the last certificate of .* ends at {day:%Y-%m-%d}"):
        read_sign_on_settings()
