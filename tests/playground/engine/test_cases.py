"""The engine and Yggdrasil, the engine of the SDKs, give the results that are expected in ``tests/vectors/engine``."""

import pytest

from tests.support.cases import CaseFile, case_files, differing, our_results, sdk_results


@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.name)
def test_ours(file: CaseFile) -> None:
    assert differing(file.cases, our_results(file)) == []


@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.name)
def test_an_sdk_agrees(file: CaseFile) -> None:
    assert differing(file.cases, sdk_results(file.state, file.cases)) == []


def test_every_flag_has_a_case_or_is_a_parent() -> None:
    for file in case_files():
        flags = {flag["name"]: flag for flag in file.state["features"]}
        parents = {dep["feature"] for flag in flags.values() for dep in flag.get("dependencies", [])}
        assert flags.keys() - {case.flag for case in file.cases} - parents == set(), file.name
