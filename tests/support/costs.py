"""What a test run costs: its processor time with all processes, compared with a budget, and its dearest tests."""

import os
from dataclasses import dataclass

import pytest

from tests.support import cpu
from tests.support.forked import CALIBRATION, COSTS, tell_second_tries

_TOLERANCE = 1.25
_PATIENCE = 15  # seconds in which database servers stop


@dataclass
class Cost:
    """Processor seconds of a run, and of a round of the calibration loop during that run."""

    seconds: float
    round: float

    @property
    def rounds(self) -> float:
        return self.seconds / self.round


_COST = pytest.StashKey[Cost]()


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--dearest", type=int, default=0, help="print this many tests that took most CPU")
    parser.addoption(
        "--cpu-budget", type=int, default=0, help="rounds of the calibration loop that the run may take"
    )
    parser.addoption(
        "--check-budget", action="store_true", help="fail if the run takes a quarter more than its budget"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput") or not config.getoption("forks") or config.option.collectonly:
        return
    cpu.wait_for_orphans(_PATIENCE)
    seconds = cpu.cpu_seconds(os.getpid())
    calibration = config.stash.get(CALIBRATION, cpu.Calibration())  # there is none if nothing was collected
    config.stash[_COST] = Cost(seconds, calibration.seconds_of_a_round())
    if _exceeds(config) and config.getoption("check_budget") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _exceeds(config: pytest.Config) -> bool:
    budget = config.getoption("cpu_budget")
    return bool(budget) and config.stash[_COST].rounds > budget * _TOLERANCE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _COST not in config.stash:
        return
    tell_second_tries(terminalreporter, config)
    write = terminalreporter.write_line
    dearest = sorted(config.stash.get(COSTS, {}).items(), key=lambda pair: -pair[1])
    for nodeid, seconds in dearest[: config.getoption("dearest")]:
        write(f"{seconds:8.2f} s  {nodeid}")
    cost, budget = config.stash[_COST], config.getoption("cpu_budget")
    write(
        f"CPU of all processes: {cost.seconds:.0f} s, {cost.rounds:,.0f} rounds of the calibration loop"
        f" of {cost.round * 1000:.1f} ms"
    )
    if budget and _exceeds(config):
        write(f"The budget is {budget:,} rounds. `make test-slow` names the dearest tests.", red=True)
