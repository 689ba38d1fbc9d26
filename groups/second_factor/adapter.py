"""The adapter for allauth.mfa: encrypts secrets, and names this installation for apps and browsers."""

from typing import Any

from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import InvalidToken

from flagadmin.core.encryption import make_fernet
from groups.second_factor.codes import SecretKeyChanged
from groups.second_factor.host import find_host

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
