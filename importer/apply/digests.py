"""Hashes of everything that an import wrote, to detect later changes."""

import hashlib
from typing import Any

import orjson


def hash_document(document: dict[str, Any]) -> str:
    return hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()
