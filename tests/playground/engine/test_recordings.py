"""The engine's results equal the reference's recorded playground responses, apart from intended differences.

A flag that no rule of PARTINGS applies to must match in every key, and every rule must be the only one for a flag
that is different.
"""

from collections import Counter

import pytest

from tests.playground.partings import PARTINGS, Judged, first_parting, judged
from tests.playground.recordings import recorded, recorded_names
from tests.support.documented_tables import rows

# Generated states have no flag for which these are the only rules. tests/outside has for the first two.
NOT_ALONE = {"operator `IN_CIDR`", "missing segments", "unknown parents", "variants of a parent"}


pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def flags() -> list[Judged]:
    return [flag for name in recorded_names() for flag in judged(recorded(name))]


def test_every_flag_without_a_parting_is_equal(flags: list[Judged]) -> None:
    assert [flag for flag in flags if not flag.equal and not flag.partings] == []


def test_most_flags_have_no_parting(flags: list[Judged]) -> None:
    assert (len(flags), sum(not flag.partings for flag in flags)) == (5880, 1911)


def test_every_parting_is_needed(flags: list[Judged]) -> None:
    alone = set().union(*(flag.partings for flag in flags if not flag.equal and len(flag.partings) == 1))

    assert alone == set(PARTINGS) - NOT_ALONE


def test_what_applications_see_is_in_the_guide(flags: list[Judged]) -> None:
    """docs/migrating.md counts the flags whose state or variant differs; one of several kinds with the first."""
    seen = Counter(first_parting(flag) for flag in flags if flag.is_seen_by_applications)
    documented = {kind: int(count) for kind, count, *_ in rows("migrating.md", "Differs")}
    assert documented == {kind: seen[kind] for kind in PARTINGS}
    assert sum(documented.values()) == 266
