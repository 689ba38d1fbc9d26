"""The adapter for allauth.mfa: encrypts secrets, and names this installation for apps, browsers and passkeys."""

import ipaddress
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.http import HttpRequest

from flagadmin.core.encryption import make_fernet
from groups.second_factor.codes import SecretKeyChanged


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
