"""Parsing and sorting SDK version strings."""

import random

import pytest

from projects.applications.sdk_versions import group_sdks, split_sdk, version_key


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ("unleash-node-sdk:6.12.1", ("unleash-node-sdk", "6.12.1")),
        ("nocolon", ("nocolon", "")),
        ("a:b:c", ("a", "b")),
        ("unleash-client-php:", ("unleash-client-php", "")),
    ],
)
def test_name_and_version(reported: str, expected: tuple[str, str]) -> None:
    assert split_sdk(reported) == expected


def test_versions_are_in_version_order() -> None:
    ordered = [
        "0.9", "1.2", "1.2.0", "1.2.1", "5.9.0", "5.10.0", "6.0.0-alpha", "6.0.0-beta.2", "6.0.0-beta.10", "6.0.0",
        "6.0.0+build", "v7.0.0", "10.0", "snapshot", "unknown",
    ]  # fmt: skip
    shuffled = random.Random(7).sample(ordered, len(ordered))
    assert sorted(shuffled, key=version_key) == ordered


def test_sdks_are_grouped_by_name() -> None:
    reported = ["b:2", "nocolon", "B:1", "b:10", "b:2"]
    assert group_sdks(reported) == [
        {"name": "B", "versions": ["1"]},
        {"name": "b", "versions": ["2", "10"]},
        {"name": "nocolon", "versions": []},
    ]
