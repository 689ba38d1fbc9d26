"""Frontend SDKs get from a relay what is expected in ``tests/vectors/engine``."""

from pathlib import Path

import pytest

from tests.support.cases import case_files
from tests.support.relay_cases import differing_through, relaying_cases

pytestmark = pytest.mark.processes


def test_the_cases_of_the_engine_hold_through_a_relay(tmp_path: Path) -> None:
    files = case_files()
    with relaying_cases(files, tmp_path) as relay:
        assert {file.name: differing_through(relay, file) for file in files} == {
            file.name: [] for file in files
        }
