"""Runs tests in forked processes: ``pytest --forks=3``.

The parent collects once and runs no test. Each child begins with everything imported, asks for one batch of tests after the
other, and sends its reports to the parent, which prints them as pytest does. A child that dies fails the test that it
ran; another one takes over the rest.

A test that waits for a browser or another process and fails gets a second try when all others have ended. The summary names
each test that passed only then. If more than three tests need a second try, none gets it.
"""

import atexit
import os
import pickle
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

from flagadmin.core.server.memory import on_one_stack
from tests.support import cpu

# A file's tests stay together if they share a fixture; others are taken in portions, so that no child is last for long.
PORTION = 25
SHARED_SCOPES = {"module", "package"}
# Starting this takes seconds of CPU in each child, so all files with a test that takes it go to one child.
SERVER = "running_server"
# Those that a busy machine can fail, and how many of them may need a second try.
WAITING = ("browser", "processes")
SECOND_TRIES = 3
# Processor seconds of each test that has run, by its id.
COSTS = pytest.StashKey[dict[str, float]]()
CALIBRATION = pytest.StashKey[cpu.Calibration]()
# The first reports of the tests that got a second try.
TRIED_AGAIN = pytest.StashKey[list[pytest.TestReport]]()


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run tests in this many forked processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    forks = session.config.getoption("forks")
    refused = session.testsfailed and not session.config.option.continue_on_collection_errors
    if not forks or session.config.option.collectonly or refused:
        return None  # pytest's own loop
    Parent(session, forks).run()
    return True


def batches(items: list[pytest.Item]) -> Iterator[list[int]]:
    """The indices of tests that one child runs: the longest first, so that all children end at about the same time."""
    found: list[list[int]] = []
    served: list[int] = []
    for _, group in groupby(enumerate(items), key=lambda pair: pair[1].path):
        indices = [index for index, _ in group]
        if any(SERVER in _fixtures(items[index]) for index in indices):
            served += indices
            continue
        size = len(indices) if any(_shares(items[index]) for index in indices) else PORTION
        found += [indices[start : start + size] for start in range(0, len(indices), size)]
    found.sort(key=lambda batch: _weight(items[batch[0]]))
    return iter([served, *found] if served else found)


def _fixtures(item: pytest.Item) -> dict[str, Any]:
    return item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]


def _shares(item: pytest.Item) -> bool:
    return any(fixture.scope in SHARED_SCOPES for several in _fixtures(item).values() for fixture in several)


def _weight(item: pytest.Item) -> int:
    kinds = ("machines", "processes", "browser", "exhaustive")
    return next((turn for turn, kind in enumerate(kinds) if item.get_closest_marker(kind)), len(kinds))


def tell_second_tries(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    failed = {report.nodeid for report in terminalreporter.getreports("failed")}
    for report in config.stash.get(TRIED_AGAIN, []):
        outcome = "failed again" if report.nodeid in failed else "passed"
        terminalreporter.write_line(f"SECOND TRY {outcome}: {report.nodeid}. The first try:", yellow=True)
        terminalreporter.write_line(report.longreprtext)


class Child:
    """What the parent knows of a child: its end of the pipe, and the indices of tests it has not finished."""

    def __init__(self, pid: int, pipe: Connection) -> None:
        self.pid, self.pipe = pid, pipe
        self.todo: deque[int] = deque()


class Parent:
    """Hands out batches and prints reports until all children have ended."""

    def __init__(self, session: pytest.Session, forks: int) -> None:
        self.session, self.hook = session, session.config.hook
        self.batches = deque(batches(session.items))
        self.children: dict[int, Child] = {}
        self.free_numbers = list(range(forks))
        self.numbers: dict[int, int] = {}
        self.first_failures: dict[int, pytest.TestReport] = {}
        self.is_second_try = False
        self.costs = session.config.stash.setdefault(COSTS, {})
        self.calibration = session.config.stash.setdefault(CALIBRATION, cpu.Calibration())

    def run(self) -> None:
        others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        assert not others, f"Tests or what they import start threads, which a fork would lose: {others}"
        self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        cpu.adopt_orphans()
        try:
            while self.children or self.batches or self._begin_second_try():
                self._fork_missing()
                self.calibration.sample()
                self._hear()
                self._bury(cpu.reap())
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)
        finally:
            self._end_all()

    def _begin_second_try(self) -> bool:
        failures, self.first_failures = self.first_failures, {}
        if len(failures) > SECOND_TRIES:
            for report in failures.values():
                self.hook.pytest_runtest_logreport(report=report)
            return False
        self.is_second_try = True
        self.session.config.stash.setdefault(TRIED_AGAIN, []).extend(failures.values())
        self.batches = deque([list(failures)] if failures else [])
        return bool(failures)

    def _fork_missing(self) -> None:
        while self.batches and self.free_numbers:
            ours, theirs = Pipe()
            number = self.free_numbers.pop(0)
            pid = os.fork()
            if pid == 0:
                for child in self.children.values():
                    child.pipe.close()
                ours.close()
                run_child(self.session, number, theirs)
            theirs.close()
            child = self.children[pid] = Child(pid, ours)
            self.numbers[pid] = number
            self._give(child)  # at once: otherwise others might be forked for the same batch

    def _give(self, child: Child) -> None:
        batch = self.batches.popleft() if self.batches else []
        child.todo += batch
        child.pipe.send(batch)

    def _hear(self) -> None:
        by_pipe = {child.pipe: child for child in self.children.values() if not child.pipe.closed}
        for pipe in wait(list(by_pipe), timeout=0.1):
            self._receive(by_pipe[pipe])

    def _receive(self, child: Child) -> None:
        try:
            kind, *content = child.pipe.recv()
            getattr(self, f"_on_{kind}")(child, *content)
        except (EOFError, ConnectionError):
            child.pipe.close()

    def _on_next(self, child: Child) -> None:
        self._give(child)

    def _on_report(self, child: Child, data: dict) -> None:
        report = self.hook.pytest_report_from_serializable(config=self.session.config, data=data)
        if report.failed and report.when != "teardown" and self._may_try_again(child.todo[0]):
            self.first_failures[child.todo[0]] = report
        else:
            self.hook.pytest_runtest_logreport(report=report)

    def _may_try_again(self, index: int) -> bool:
        item = self.session.items[index]
        return not self.is_second_try and any(item.get_closest_marker(marker) for marker in WAITING)

    def _on_finish(self, child: Child, nodeid: str, location: Any, seconds: float) -> None:
        child.todo.popleft()
        self.costs[nodeid] = seconds
        self.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _on_warning(self, child: Child, given: dict) -> None:
        self.hook.pytest_warning_recorded.call_historic(kwargs=given)

    def _bury(self, ended: dict[int, int]) -> None:
        for pid in ended.keys() & self.children.keys():
            child = self.children[pid]
            while not child.pipe.closed and child.pipe.poll():
                self._receive(child)
            child.pipe.close()
            del self.children[pid]
            self.free_numbers.append(self.numbers.pop(pid))
            if ended[pid] or child.todo:
                self._tell_death(child, ended[pid])

    def _tell_death(self, child: Child, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        nodeid = f"process {child.pid}"
        location: tuple[str, int | None, str] = ("tests", None, "after its last test")
        if child.todo:
            item = self.session.items[child.todo.popleft()]
            nodeid, location = item.nodeid, item.location
        if child.todo:
            self.batches.appendleft([*child.todo])
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        report = pytest.TestReport(
            nodeid, location, {}, "failed", f"The process that ran this test ended {how}.", "call"
        )
        self.hook.pytest_runtest_logreport(report=report)

    def _end_all(self) -> None:
        """Ends the children that still run, as Ctrl+C does: they tear their fixtures down."""
        for child in self.children.values():
            os.kill(child.pid, signal.SIGINT)
            child.pipe.close()
        while self.children:
            for pid in self.children.keys() & cpu.reap().keys():
                del self.children[pid]
            time.sleep(0.05)


def run_child(session: pytest.Session, number: int, pipe: Connection) -> None:
    """Runs what the parent hands out, and ends the process."""
    code = 1
    try:
        atexit._clear()
        become_child(session.config, number, pipe)
        try:
            run_assigned(session, pipe)
            code = 0
        except (KeyboardInterrupt, pytest.exit.Exception):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        finally:
            session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
    except KeyboardInterrupt:
        pass  # while fixtures were torn down
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
        code = 1
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def become_child(config: Any, number: int, pipe: Connection) -> None:
    """Gives the process its own database, folder and captured output, as pytest-xdist's workers have them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    config.workerinput = {"workerid": f"gw{number}"}
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f"worker{number}-{os.getpid()}"
    factory._basetemp.mkdir()
    config.pluginmanager.unregister(name="terminalreporter")
    reporter = Reporter(config)
    config.pluginmanager.register(reporter)  # hears the warnings of the parent again
    reporter.pipe = pipe
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # its file is the parent's
    capture.start_global_capturing()
    capture.suspend_global_capture()


@on_one_stack
def run_assigned(session: pytest.Session, pipe: Connection) -> None:
    indices = _assigned(pipe)
    index = next(indices, None)
    while index is not None:
        following = next(indices, None)
        item = session.items[index]
        next_item = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
        index = following


def _assigned(pipe: Connection) -> Iterator[int]:
    while batch := pipe.recv():
        yield from batch
        pipe.send(("next",))


class Reporter:
    """Sends the parent what a test run would print."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.pipe: Connection | None = None
        self.pid = os.getpid()
        self.begin = 0.0

    def _send(self, *message: Any) -> None:
        if self.pipe and os.getpid() == self.pid:  # not in a process that a test forked
            with suppress(BrokenPipeError):  # the parent hears no more
                self.pipe.send(message)

    def pytest_runtest_logstart(self) -> None:
        self.begin = cpu.cpu_seconds(self.pid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        hook = self.config.hook
        self._send("report", hook.pytest_report_to_serializable(config=self.config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        spent = cpu.cpu_seconds(self.pid) - self.begin
        self._send("finish", nodeid, location, max(0.0, spent))  # an orphan has taken its time along

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        given = {"when": when, "nodeid": nodeid, "location": location}
        told = warnings.WarningMessage(
            Warning(str(warning_message.message)), warning_message.category,
            warning_message.filename, warning_message.lineno,
        )  # fmt: skip
        try:
            pickle.dumps(told)
        except (pickle.PicklingError, AttributeError, TypeError):
            told.category = Warning
        self._send("warning", given | {"warning_message": told})
