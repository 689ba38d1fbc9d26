"""A test run in forked processes reports as pytest does, and a test whose process dies has failed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import cpu
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

CONFTEST = """
import os, pytest
from tests.support.costs import pytest_sessionfinish, pytest_terminal_summary
from tests.support.forked import pytest_runtestloop

@pytest.fixture(scope="session")
def running_server(tmp_path_factory):
    # A second process that starts it would fail.
    (tmp_path_factory.getbasetemp().parent / "started").mkdir()
    return os.getpid()

def pytest_addoption(parser):
    from tests.support import costs, forked
    forked.add_options(parser)
    costs.add_options(parser)
"""
TESTS = """
import os, signal, subprocess, sys, warnings
import pytest
from pytest import skip

@pytest.mark.parametrize("n", range(30))
def test_many(n):
    if n == 4:
        warnings.warn("careful")

def test_fails():
    print("what it printed")
    assert [1, 2] == [1, 3]

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after_it(tmp_path):
    (tmp_path / "file").write_text("")

def test_skips():
    skip("not here")

@pytest.mark.parametrize("seconds", [0.4])
def test_is_dear(seconds):
    code = f"import time\\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
SHARED = """
import os, pytest

@pytest.fixture(scope="module")
def first():
    return os.getpid()

@pytest.mark.parametrize("n", range(60))
def test_shares(first, n):
    assert os.getpid() == first
"""
SERVED = """
import os, pytest

def test_asks_the_shared_server(running_server):
    assert os.getpid() == running_server
"""

WAITING = """
from pathlib import Path
import pytest

@pytest.mark.{marker}
@pytest.mark.parametrize("n", range({tests}))
def test_waits(n):
    tried = Path(__file__).with_name(f"tried{{n}}")
    is_first = not tried.exists()
    tried.touch()
    assert not is_first and {passes}, f"was too late for {{n}}"
"""


@pytest.fixture
def run(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_shared.py").write_text(SHARED)
    for name in ("first", "second", "third"):
        (tmp_path / f"test_{name}.py").write_text(SERVED.replace("asks", name))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:django", "--rootdir", str(tmp_path), *arguments]
        ended = subprocess.run(
            [*command, "--forks=3", str(tmp_path)],
            cwd=ROOT,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout

    return run


def test_every_outcome_is_told_once(run):
    code, told = run("--dearest=1")
    assert code == 1
    assert re.findall(r"(\d+) (failed|passed|skipped|warning)", told.splitlines()[-1]) == [
        ("2", "failed"), ("95", "passed"), ("1", "skipped"), ("1", "warning"),
    ]  # fmt: skip
    assert "The process that ran this test ended by SIGKILL." in told
    assert re.search(r"^E +assert \[1, 2\] == \[1, 3\]", told, re.MULTILINE)
    assert "what it printed" in told
    assert "UserWarning: careful" in told
    # What its child took, read in ticks of 10 ms, or more: the child's start takes long on a busy machine.
    dearest = re.search(r"^ +(\d+\.\d+) s  test_it.py::test_is_dear", told, re.MULTILINE)
    assert dearest
    assert float(dearest[1]) >= 0.35
    assert re.search(
        r"^CPU of all processes: \d+ s, [\d,]+ rounds of the calibration loop of [\d.]+ ms$",
        told,
        re.MULTILINE,
    )


def test_the_exit_code_is_that_of_pytest(run):
    within_budget = ("--cpu-budget=10000000", "--check-budget")
    assert run("-k", "many or shares", *within_budget)[0] == pytest.ExitCode.OK
    assert run("-k", "no_such_test")[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    code, told = run("-x", "-k", "fails or many")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in told


def test_a_run_that_exceeds_its_budget_by_a_quarter_fails_where_that_is_asked_for(run):
    few = ("-k", "skips", "--cpu-budget=1")
    code, told = run(*few)
    assert code == pytest.ExitCode.OK
    assert "The budget is 1 rounds." in told
    assert run(*few, "--check-budget")[0] == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("marker", "tests", "passes", "counts"),
    [
        ("browser", 3, True, {"passed": "3"}),
        ("processes", 1, True, {"passed": "1"}),
        ("browser", 1, False, {"failed": "1"}),
        ("browser", 4, True, {"failed": "4"}),
        ("exhaustive", 1, True, {"failed": "1"}),
    ],
)
def test_up_to_three_tests_that_wait_get_a_second_try(run, tmp_path, marker, tests, passes, counts):
    (tmp_path / "test_waiting.py").write_text(WAITING.format(marker=marker, tests=tests, passes=passes))
    code, told = run("-k", "waits")
    assert code == ("failed" in counts)
    assert {kind: n for n, kind in re.findall(r"(\d+) (failed|passed)", told.splitlines()[-1])} == counts
    second = re.findall(r"^SECOND TRY (.*): .*::test_waits\[\d\]\. The first try:$", told, re.MULTILINE)
    outcome = "passed" if passes else "failed again"
    assert second == ([outcome] * tests if tests <= 3 and marker != "exhaustive" else [])
    assert all(f"was too late for {n}" in told for n in range(tests))


@pytest.mark.parametrize(("seconds", "median"), [(80, 5), (100, 14)])
def test_a_round_is_the_median_of_those_during_the_run_if_they_are_enough(monkeypatch, seconds, median):
    during = iter([8, *[14] * 9])
    monkeypatch.setattr(cpu, "_round", lambda: next(during))
    calibration = cpu.Calibration()
    for second in range(seconds):
        monkeypatch.setattr(cpu.time, "monotonic", lambda second=second: 1000.0 + second)
        calibration.sample()
    after = iter([3, 5, 9] * 3)
    monkeypatch.setattr(cpu, "_round", lambda: next(after))
    assert calibration.seconds_of_a_round() == median
