"""The engine's results equal the reference's recorded playground responses, apart from intended differences.

A flag that no rule of PARTINGS applies to must match in every key, and every rule must be the only one for a flag
that is different.
"""

import pytest

from tests.playground.partings import PARTINGS, Judged, judged
from tests.playground.recordings import recordings

# Generated states have no flag for which these are the only rules. tests/outside has.
NOT_ALONE = {"IN_CIDR works", "a missing segment fails"}


pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def flags() -> list[Judged]:
    return [flag for found in recordings() for flag in judged(found)]


def test_every_flag_without_a_parting_is_equal(flags: list[Judged]) -> None:
    assert [flag for flag in flags if not flag.equal and not flag.partings] == []


def test_most_flags_have_no_parting(flags: list[Judged]) -> None:
    assert (len(flags), sum(not flag.partings for flag in flags)) == (5880, 1911)


def test_every_parting_is_needed(flags: list[Judged]) -> None:
    alone = set().union(*(flag.partings for flag in flags if not flag.equal and len(flag.partings) == 1))

    assert alone == set(PARTINGS) - NOT_ALONE
