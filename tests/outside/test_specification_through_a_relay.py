"""The client specification through a relay."""

from pathlib import Path

import pytest

from tests.outside.specification import specification
from tests.support.relay_cases import differing_through, relaying_cases

pytestmark = pytest.mark.processes


def test_all_of_it_holds_through_a_relay(tmp_path: Path) -> None:
    files = specification()
    with relaying_cases(files, tmp_path) as relay:
        assert {file.name: differing_through(relay, file) for file in files} == {
            file.name: [] for file in files
        }
