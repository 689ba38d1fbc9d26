"""Passkeys and security keys (WebAuthn). allauth and fido2 make the challenges and check browsers' answers.

A challenge is kept until it is answered, once: in the session, or before a login in a cookie, because sessions for
all visitors of the login page would fill the database.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from cryptography.exceptions import UnsupportedAlgorithm
from django.core.exceptions import ValidationError as Refused

from flagadmin.core.errors import ValidationError
from groups.models import User

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
