"""Passkeys and security keys (WebAuthn). allauth and fido2 make the challenges and check browsers' answers.

A challenge is kept until it is answered, once: in the session, or before a login in a cookie, because sessions for
all visitors of the login page would fill the database.

The adapter for allauth.mfa: encrypts secrets, and names this installation for apps, browsers and passkeys.
"""

import ipaddress
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import orjson
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.exceptions import ValidationError as Refused
from django.http import HttpRequest

from flagadmin.core.encryption import make_fernet
from flagadmin.core.errors import ValidationError
from groups.models import User
from groups.second_factor.actions import SecretKeyChanged

MAX_ANSWER_LENGTH = 20_000  # characters of a browser's answer
REFUSED = "The passkey was not accepted. Try again."
INVALID_ANSWER_ERRORS = (
    Refused,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    struct.error,
    UnsupportedAlgorithm,
)

State = dict[str, Any]


def begin_registration(user: User) -> dict[str, Any]:
    """The browser's options for making a passkey, which also works without a password if the device can store it."""
    options = auth.begin_registration(user, False)
    selection = options["publicKey"]["authenticatorSelection"]
    return {
        "publicKey": options["publicKey"]
        | {"authenticatorSelection": selection | {"residentKey": "preferred", "requireResidentKey": False}}
    }


def verify_new_credential(answer: str) -> dict[str, Any]:
    """The new passkey in the answer. Raises ValidationError."""
    with _refusing():
        credential = _parse(answer)
        auth.parse_registration_response(credential)
        auth.complete_registration(credential)
        return credential


def begin_authentication(user: User | None) -> dict[str, Any]:
    """The browser's options for using a passkey of this user or, without a password, of any user."""
    return auth.begin_authentication(user)


def verify_passkey(user: User, answer: str) -> Authenticator:
    """The user's passkey in the answer. Raises ValidationError."""
    with _refusing():
        return _complete(user, _parse(answer))


def verify_passkey_of_anyone(answer: str) -> Authenticator:
    """Any user's passkey, unlocked with their PIN, finger or face. Raises ValidationError."""
    with _refusing():
        credential = _parse(answer)
        auth.parse_authentication_response(credential)
        return _complete(auth.extract_user_from_response(credential), credential)


def take_state() -> State:
    """Takes the challenge of this request out of the session."""
    state = auth.get_state() or {}
    auth.clear_state()
    return {name: str(value) for name, value in state.items()}


def put_state(state: State) -> None:
    auth.set_state(state)


def _complete(user: Any, credential: dict[str, Any]) -> Authenticator:
    auth.parse_authentication_response(credential)
    try:
        return auth.complete_authentication(user, credential)
    finally:
        auth.clear_state()


def _parse(answer: str) -> dict[str, Any]:
    if len(answer) > MAX_ANSWER_LENGTH:
        raise ValueError(f"{len(answer)} characters")
    credential = orjson.loads(answer)
    if not isinstance(credential, dict):
        raise TypeError(type(credential))
    return credential


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuses every invalid answer with the same message."""
    try:
        yield
    except INVALID_ANSWER_ERRORS as error:
        raise ValidationError(REFUSED) from error


def find_host(request: HttpRequest) -> str:
    """The host name that people open. Passkeys belong to it: under another name, browsers do not offer them."""
    return urlsplit(settings.PUBLIC_URL or f"//{request.get_host()}").hostname or ""


def has_passkeys(request: HttpRequest) -> bool:
    """Whether browsers offer passkeys here: they require HTTPS and a host name instead of an address."""
    host = find_host(request)
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return False
    return request.is_secure() or host == "localhost" or host.endswith(".localhost")


_PURPOSE = "groups.second_factor"


class MFAAdapter(DefaultMFAAdapter):
    """Named in ``settings.MFA_ADAPTER``."""

    error_messages = {"incorrect_code": "The passkey was not accepted. Try again."}

    def encrypt(self, text: str) -> str:
        return make_fernet(_PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises SecretKeyChanged."""
        try:
            return make_fernet(_PURPOSE).decrypt(encrypted_text).decode()
        except InvalidToken as error:
            raise SecretKeyChanged from error

    def get_totp_issuer(self) -> str:
        return f"flagadmin ({find_host(context.request)})"

    def _get_user_identifier(self, user: Any) -> str:
        return user.username

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": find_host(context.request), "name": "flagadmin"}
