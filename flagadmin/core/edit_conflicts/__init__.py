"""Optimistic locking: an action with ``expected`` fails if the object has changed since the caller read it.

The version of an object is the fingerprint of its document, compared in the action's transaction while the
object is locked. API clients send one in ``If-Match`` (``etags.py``), forms of the console and of the admin site in a
hidden field (``forms.py``).
"""

import hashlib
import json
from typing import Any

from flagadmin.core.errors import EditConflict

Expected = frozenset[str] | None
"""The versions that the caller accepts; None accepts any."""


def hash_document(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:32]


def check_expected(expected: Expected, document: Any, message: str | None = None) -> None:
    """Raises EditConflict if ``document``, read under the lock, matches none of the expected versions."""
    if expected is not None and hash_document(document) not in expected:
        raise EditConflict(document, message)
