"""Optimistic locking: an action that is given ``expected`` changes nothing but the version that its caller has read.

A version is the fingerprint of the document that the action compares under its lock, in its transaction. Console
forms send it in a hidden field, API clients as ``If-Match``.
"""

import hashlib
import json
from typing import Any

from flagadmin.errors import EditConflict

Expected = frozenset[str] | None
"""The versions that the caller accepts; None accepts every one."""


def fingerprint(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:32]


def check_expected(expected: Expected, document: Any, message: str | None = None) -> None:
    """Raises EditConflict where ``document``, read under the lock, is of no expected version."""
    if expected is not None and fingerprint(document) not in expected:
        raise EditConflict(document, message)
