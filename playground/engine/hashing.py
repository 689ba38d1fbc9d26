"""Where an identifier falls: MurmurHash3 (x86, 32 bit) over UTF-8, as all SDKs compute it.

A bucket is `murmur3(hash_key(group) + identifier, seed, False) % size + 1`, from 1 to `size`: 100 for rollouts,
the sum of the weights for variants. False asks for an unsigned number.
"""

from __future__ import annotations

from mmh3 import hash as murmur3

__all__ = ["ROLLOUT_SEED", "VARIANT_SEED", "hash_key", "murmur3"]

ROLLOUT_SEED = 0
VARIANT_SEED = 86028157
"""The seeds of the client specification: variants must not go along with rollouts."""


def hash_key(group: str) -> bytes:
    """What precedes the identifier in the hashed bytes: the group and a colon."""
    return group.encode() + b":"
