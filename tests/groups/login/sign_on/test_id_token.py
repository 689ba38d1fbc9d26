"""Which ID tokens count."""

from datetime import UTC, datetime

import jwt
import pytest
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from cryptography.hazmat.primitives.asymmetric import ec

from groups.login.sign_on.provider import LEEWAY, verify_claims
from tests.groups.login.sign_on.keys import public

ISSUER, CLIENT, NONCE = "https://login.example.org", "flagadmin", "n" * 43
KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
NOW = 1_800_000_000
GOOD = {"iss": ISSUER, "aud": CLIENT, "sub": "anna", "iat": NOW, "exp": NOW + 3600, "nonce": NONCE}


class StandingClock(datetime):
    @classmethod
    def now(cls, tz=None):  # noqa: ARG003
        return datetime.fromtimestamp(NOW, UTC)


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    monkeypatch.setattr(jwt.api_jwt, "datetime", StandingClock)


def check(claims, *, key=KEY, algorithm="ES256", keys=None, kid="one"):
    token = jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid} if kid else {})
    keys = {"keys": [public(KEY)]} if keys is None else keys
    return verify_claims(token, keys=keys, issuer=ISSUER, client_id=CLIENT, nonce=NONCE)


def without(name):
    return {key: value for key, value in GOOD.items() if key != name}


def test_a_valid_token_logs_in():
    assert check(GOOD)["sub"] == "anna"
    assert check(GOOD | {"aud": [CLIENT]})["sub"] == "anna"
    assert check(GOOD | {"aud": [CLIENT, "other"], "azp": CLIENT})["sub"] == "anna"
    assert check(GOOD, kid=None)["sub"] == "anna"


@pytest.mark.parametrize(
    "claims",
    [
        GOOD | {"iss": "https://evil.example"},
        GOOD | {"aud": "other"},
        GOOD | {"aud": [CLIENT, "other"]},
        GOOD | {"aud": [CLIENT, "other"], "azp": "other"},
        GOOD | {"exp": NOW - LEEWAY - 1},
        GOOD | {"iat": NOW + LEEWAY + 1},
        GOOD | {"nbf": NOW + LEEWAY + 1},
        GOOD | {"nonce": "m" * 43},
        GOOD | {"nonce": 5},
        GOOD | {"sub": ""},
        GOOD | {"sub": "x" * 192},
        GOOD | {"sub": 5},
        *(without(name) for name in GOOD),
    ],
    ids=str,
)
def test_wrong_claims_are_refused(claims):
    with pytest.raises(OAuth2Error):
        check(claims)


def test_clocks_may_differ_a_little():
    assert check(GOOD | {"exp": NOW - LEEWAY + 1})
    assert check(GOOD | {"iat": NOW + LEEWAY})


@pytest.mark.parametrize(
    "how",
    [
        {"key": OTHER},
        {"kid": "two"},
        {"key": None, "algorithm": "none"},
        {"key": "s3cret" * 10, "algorithm": "HS256"},
        {"keys": {"keys": []}},
        {"keys": {}},
        {"keys": {"keys": [public(KEY, use="enc")]}},
        {"keys": {"keys": [public(KEY), public(OTHER)]}},
    ],
    # The keys are others in each worker of the test run; names of tests must not be.
    ids=[
        "other key",
        "unknown kid",
        "none",
        "secret",
        "no keys",
        "no list",
        "for encryption",
        "two of one kid",
    ],
)
def test_wrong_signatures_are_refused(how):
    with pytest.raises(OAuth2Error):
        check(GOOD, **how)


def test_a_secret_among_the_keys_proves_nothing():
    """Who could put the key into the set could sign as well, but no symmetric key is for this."""
    secret = {
        "kty": "oct",
        "k": "czNjcmV0czNjcmV0czNjcmV0czNjcmV0czNjcmV0czNjcmV0",
        "kid": "one",
        "alg": "HS256",
    }
    with pytest.raises(OAuth2Error):
        check(GOOD, key="s3crets3crets3crets3crets3crets3cret", algorithm="HS256", keys={"keys": [secret]})


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é"])
def test_an_answer_without_a_token_is_refused(token):
    with pytest.raises(OAuth2Error):
        verify_claims(token, keys={"keys": [public(KEY)]}, issuer=ISSUER, client_id=CLIENT, nonce=NONCE)
