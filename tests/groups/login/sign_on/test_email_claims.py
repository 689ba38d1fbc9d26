"""Which claim has the email address, and what people are told if it is missing."""

from typing import Any

import pytest

from flagadmin.core.errors import NoAccess
from groups.login.sign_on.accounts import check_domain, sign_on
from groups.login.sign_on.provider import Identity
from groups.login.sign_on.settings import OidcSettings
from tests.support.cast import make_user

SETTINGS = OidcSettings(issuer="https://x.org", client_id="x")
UPN = {"sub": "1", "preferred_username": "kim@x.org", "upn": "kim@x.org"}


def read(claims: dict[str, Any], **settings: Any) -> tuple[Identity, OidcSettings]:
    oidc = OidcSettings(issuer="https://x.org", client_id="x", **settings)
    return Identity.of({"sub": "1"} | claims, oidc), oidc


@pytest.mark.parametrize("says", [True, "true", "True", "TRUE"])
def test_verified_may_be_text(says: object) -> None:
    assert read({"email": "kim@x.org", "email_verified": says})[0].email_is_verified


@pytest.mark.parametrize("says", [False, "False", None, 1, "yes", ["true"]])
def test_anything_else_is_not_verified(says: object) -> None:
    assert not read({"email": "kim@x.org", "email_verified": says})[0].email_is_verified


@pytest.mark.parametrize(
    ("claim", "claims"),
    [
        ("preferred_username", UPN),
        ("upn", UPN),
        ("emails", {"emails": ["kim@x.org", "other@x.org"]}),
        ("mail", {"mail": "kim@x.org", "email": "no@x.org"}),
    ],
)
def test_a_setting_names_another_claim(claim: str, claims: dict[str, Any]) -> None:
    identity, oidc = read(claims, email_claim=claim, trust_email=True, email_domains=frozenset({"x.org"}))
    assert (identity.email, identity.email_is_verified) == ("kim@x.org", True)
    check_domain(identity, oidc)


def test_email_verified_says_nothing_of_another_claim() -> None:
    identity, _ = read(UPN | {"email_verified": True}, email_claim="upn")
    assert not identity.email_is_verified


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        (
            UPN,
            "sends no email address (claim email); it sends preferred_username, upn, and FLAGADMIN_OIDC_EMAIL",
        ),
        ({"emails": ["kim@x.org"]}, "sends no email address (claim email); it sends emails, and"),
        ({}, "The identity provider sends no email address (claim email)."),
        ({"email": "kim@x.org"}, "does not say that kim@x.org is verified (email_verified)."),
    ],
)
def test_the_missing_claim_is_named(claims: dict[str, Any], told: str) -> None:
    with pytest.raises(NoAccess) as refused:
        check_domain(*read(claims, email_domains=frozenset({"x.org"})))
    assert told in refused.value.message


def test_linking_by_email_names_it_too(db: None, settings: Any) -> None:
    make_user("Kim", email="kim@x.org")
    identity, settings.SIGN_ON = read(UPN, link_by_email=True)
    with pytest.raises(NoAccess) as refused:
        sign_on(identity)
    assert "sends no email address (claim email)" in refused.value.message
