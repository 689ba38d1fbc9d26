"""Checks passwords whose bcrypt hashes come from another system. The next login replaces each by a hash of our own."""

import re

import bcrypt
from django.contrib.auth.hashers import BCryptPasswordHasher

MAX_BYTES = 72
"""bcrypt reads no more of a password. Other libraries cut the rest off, ours refuses it."""
_HASH = re.compile(r"\$2[aby]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}")


class CuttingBcryptHasher(BCryptPasswordHasher):
    def encode(self, password: str, salt: str | bytes) -> str:
        salt = salt.encode() if isinstance(salt, str) else salt
        return f"{self.algorithm}${bcrypt.hashpw(password.encode()[:MAX_BYTES], salt).decode()}"


def encode_foreign(hashed: str) -> str | None:
    """Encodes another system's bcrypt hash as Django stores it. None if it is no such hash, or takes seconds to
    check."""
    return f"{CuttingBcryptHasher.algorithm}${hashed}" if _HASH.fullmatch(hashed) else None
