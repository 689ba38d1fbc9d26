"""Rollout buckets and variant places of identifiers: MurmurHash3 (x86, 32 bit) of UTF-8, as in all SDKs.

Both numbers that can affect a flag's result come from here: the bucket of a rollout, from 1 to 100, and the place of an
identifier among the weights of variants, from 1 to their total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

from mmh3 import mmh3_32_uintdigest as murmur3

ROLLOUT_SEED = 0
VARIANT_SEED = 86028157
"""The seeds of the client specification: variants must not correlate with rollouts."""

Random = Callable[[], float]
"""A source of randomness: numbers in [0, 1)."""


def hash_key(group: str) -> bytes:
    """The bytes that are hashed before the identifier: the group and a colon."""
    return group.encode() + b":"


def hash_places(keys: Iterable[bytes], sizes: Iterable[int], identifier: bytes, seed: int) -> list[int]:
    """The place of the identifier for each key, from 1 to the size given for that key."""
    # `strict` would add a tenth to an evaluation; sizes may be infinite.
    return [murmur3(key + identifier, seed) % size + 1 for key, size in zip(keys, sizes, strict=False)]


def hash_place(key: bytes, size: int, identifier: bytes, seed: int) -> int:
    """The place of the identifier for one key, from 1 to the size."""
    return murmur3(key + identifier, seed) % size + 1


def compute_hashes(key: bytes, identifiers: Iterable[bytes], seed: int) -> list[int]:
    """The hash of each identifier for one key. The place is its remainder by the size, plus 1."""
    return list(map(murmur3, map(key.__add__, identifiers), repeat(seed)))  # half the time of a loop


def draw_places(sizes: Iterable[int], random: Random) -> list[int]:
    """Random places, from 1 to each size, for a context without an identifier."""
    return [int(random() * size) + 1 for size in sizes]
