"""The reference's recorded playground answers for the specification's states, as for our own recordings."""

import pytest

from tests.outside.recordings import specification_recordings
from tests.playground.partings import Judged, judged
from tests.playground.stored_recordings import check_the_api_answers_as_the_engine

RECORDINGS = specification_recordings()


@pytest.fixture(scope="module")
def flags() -> list[Judged]:
    return [flag for found in RECORDINGS for flag in judged(found)]


def test_every_flag_without_a_parting_is_equal(flags: list[Judged]) -> None:
    assert [flag for flag in flags if not flag.equal and not flag.partings] == []


def test_the_partings_that_no_generated_state_needs_are_needed(flags: list[Judged]) -> None:
    alone = set().union(*(flag.partings for flag in flags if not flag.equal and len(flag.partings) == 1))

    assert alone >= {"operator `IN_CIDR`", "missing segments"}


@pytest.mark.django_db
@pytest.mark.parametrize("found", RECORDINGS, ids=lambda found: found.name)
def test_the_api_answers_as_the_engine(api, found, monkeypatch):
    check_the_api_answers_as_the_engine(found, api["viewer"], monkeypatch)


def test_most_flags_have_no_parting(flags: list[Judged]) -> None:
    assert (len(RECORDINGS), len(flags), sum(not flag.partings for flag in flags)) == (22, 3634, 2493)
