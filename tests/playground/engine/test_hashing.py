"""Buckets of rollouts and places among variants are those of every SDK (``tests/vectors/hashes.jsonl``)."""

import pytest

from playground.engine.hashing import ROLLOUT_SEED, VARIANT_SEED, hash_key, hash_places
from tests.support.hashes import sdk_places
from tests.support.vectors import load

ROWS = [tuple(row.values()) for row in load("hashes")]


@pytest.mark.parametrize(("group", "identifier", "bucket", "place"), ROWS)
def test_ours(group: str, identifier: str, bucket: int, place: int) -> None:
    key, hashed = hash_key(group), identifier.encode()

    assert hash_places([key], [100], hashed, ROLLOUT_SEED) == [bucket]
    assert hash_places([key], [1000], hashed, VARIANT_SEED) == [place]


@pytest.mark.parametrize(("group", "identifier", "bucket", "place"), ROWS)
def test_an_sdk_agrees(group: str, identifier: str, bucket: int, place: int) -> None:
    assert sdk_places(group, identifier) == (bucket, place)
