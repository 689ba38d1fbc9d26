"""Where an identifier falls: MurmurHash3 (x86, 32 bit) over UTF-8, as all SDKs compute it.

Both numbers that a flag's result can depend on come from here: the bucket of a rollout, from 1 to 100, and the place of
an identifier among the weights of variants, from 1 to their total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mmh3 import hash as murmur3

ROLLOUT_SEED = 0
VARIANT_SEED = 86028157
"""The seeds of the client specification: variants must not go along with rollouts."""

Random = Callable[[], float]
"""A source of randomness: numbers in [0, 1)."""


def hash_key(group: str) -> bytes:
    """What precedes the identifier in the hashed bytes: the group and a colon."""
    return group.encode() + b":"


def hashed_places(keys: Iterable[bytes], sizes: Iterable[int], identifier: bytes, seed: int) -> list[int]:
    """For every key where the identifier falls, from 1 to the key's size."""
    # `strict` would cost a tenth of an evaluation; sizes may be endless. False asks for an unsigned number.
    return [murmur3(key + identifier, seed, False) % size + 1 for key, size in zip(keys, sizes, strict=False)]


def drawn_places(sizes: Iterable[int], random: Random) -> list[int]:
    """The same at random, where there is no identifier."""
    return [int(random() * size) + 1 for size in sizes]
