"""The adapter for allauth.mfa: encrypts secrets, and names this installation for apps and browsers."""

from base64 import urlsafe_b64encode
from typing import Any

from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac

from groups.second_factor.codes import SecretKeyChanged
from groups.second_factor.host import find_host


class MFAAdapter(DefaultMFAAdapter):
    """Named in ``settings.MFA_ADAPTER``."""

    error_messages = {"incorrect_code": "The passkey was not accepted. Try again."}

    def encrypt(self, text: str) -> str:
        return _fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises SecretKeyChanged."""
        try:
            return _fernet().decrypt(encrypted_text).decode()
        except InvalidToken as error:
            raise SecretKeyChanged from error

    def get_totp_issuer(self) -> str:
        return f"flagadmin ({find_host(context.request)})"

    def _get_user_identifier(self, user: Any) -> str:
        return user.username

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": find_host(context.request), "name": "flagadmin"}


def _fernet() -> MultiFernet:
    """Encrypts with a key derived from SECRET_KEY; decrypts with those of SECRET_KEY_FALLBACKS too."""
    keys = (
        salted_hmac("groups.second_factor", "", secret=key, algorithm="sha256").digest()
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )
    return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])
