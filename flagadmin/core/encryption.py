"""Encrypts stored secrets with a key derived from SECRET_KEY. Also decrypts with the fallback keys."""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac


def make_fernet(purpose: str) -> MultiFernet:
    """Makes a cipher for each ``purpose``, so that no secret can be put in the place of another."""
    keys = (
        salted_hmac(purpose, "", secret=key, algorithm="sha256").digest()
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )
    return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])
