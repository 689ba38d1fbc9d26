"""Where an identifier falls: MurmurHash3 (x86, 32 bit) over UTF-8, as all SDKs compute it."""

from __future__ import annotations

from mmh3 import hash as murmur3

ROLLOUT_SEED = 0
VARIANT_SEED = 86028157
"""Seeds of the client specification: variants must not correlate with rollouts."""


def hash_key(group: str) -> bytes:
    """What precedes the identifier in the hashed bytes: the group and a colon."""
    return group.encode() + b":"


def bucket(key: bytes, identifier: bytes, size: int = 100, seed: int = ROLLOUT_SEED) -> int:
    """The bucket from 1 to `size` of an identifier in the group of `key`."""
    position: int = murmur3(key + identifier, seed, False) % size
    return position + 1
