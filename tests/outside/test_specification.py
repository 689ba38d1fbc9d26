"""The engine passes all tests of the SDKs' client specification."""

import pytest

from tests.outside.specification import specification
from tests.support.cases import CaseFile, differing, our_results


@pytest.mark.parametrize("file", specification(), ids=lambda file: file.name)
def test_ours(file: CaseFile) -> None:
    assert differing(file.cases, our_results(file)) == []


def test_all_of_the_specification_was_run() -> None:
    assert sum(len(file.cases) for file in specification()) == 279
