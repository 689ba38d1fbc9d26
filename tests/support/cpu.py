"""Processor time of a process with all its descendants, in seconds and in rounds of a calibration loop.

Seconds differ between machines and between quiet and busy hours; rounds of a fixed loop compare.
"""

import ctypes
import os
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

_PR_SET_CHILD_SUBREAPER = 36
_PAUSE, _ENOUGH = 10, 9  # seconds between two samples, and how many make a median
_TICKS = os.sysconf("SC_CLK_TCK")


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose parent ends, so that their time counts when they end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> dict[int, int]:
    """Collects the children that have ended: their wait status by pid."""
    ended = {}
    try:
        while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            ended[found[0]] = found[1]
    except ChildProcessError:
        pass  # there is none
    return ended


def wait_for_orphans(seconds: float) -> None:
    """Waits until every child has ended, a database server that stops for example, but no longer than this."""
    deadline = time.monotonic() + seconds
    while (
        time.monotonic() < deadline and Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    ):
        reap()
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """Seconds that this process, its living descendants and those that have ended took."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0  # it has just ended
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(cpu_seconds, _children(pid, tasks)))


def _children(pid: int, tasks: list[str]) -> list[int]:
    found = []
    for task in tasks:
        with suppress(OSError):  # a thread has just ended
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


class Calibration:
    """Measures rounds of a fixed loop during a run, while its other processes load the cores.

    After the run, on idle cores, a round may take a third less.
    """

    def __init__(self) -> None:
        self._due = 0.0
        self.samples: list[float] = []

    def sample(self) -> None:
        """Measures a round if the last one was ten seconds ago or more."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _PAUSE
            self.samples.append(_round())

    def seconds_of_a_round(self) -> float:
        """Processor seconds of a round: the median of those sampled, or of nine measured now if there are fewer."""
        enough = len(self.samples) >= _ENOUGH
        return median(self.samples if enough else [_round() for _ in range(_ENOUGH)])


def _round() -> float:
    begin = time.process_time()
    sum(i * i for i in range(200_000))
    return time.process_time() - begin
