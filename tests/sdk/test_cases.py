"""The cases of ``tests/vectors/engine`` over HTTP: SDKs and the playground give the expected results.

Every flag that the API stores as it is must give the expected results in both. Of the others, the file says why.
"""

import pytest

from tests.support.cases import CaseFile, case_files
from tests.support.installed_cases import outcomes

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]


@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.name)
def test_all_that_is_stored_holds(file: CaseFile) -> None:
    def as_stated(outcome: str, flag: str) -> bool:
        stated = file.stored.get(flag, "holds").partition(":")[0]
        return outcome == stated or (outcome, stated) == ("holds", "changed")

    assert [row for row in outcomes(file) if not as_stated(row[0], row[1].flag)] == []
