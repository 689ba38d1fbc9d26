"""Stopping a worker: the stop handler is called, and requests that take too long are ended and logged."""

import os
import signal
import subprocess
import sys

import pytest

from flagadmin.management.commands import serve
from tests.support.live_server import PATIENCE
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

WORKER = """
import logging, threading
from flagadmin.core.server.worker_processes import stop_on_sigterm, set_stop_handler

logging.basicConfig()
stop_on_sigterm(0.1)
{}
print("ready", flush=True)
threading.Event().wait()  # a request that takes for ever
"""
HANDLER = 'set_stop_handler(lambda: print("handled", flush=True), lambda: {})'


def told(worker: str, number: signal.Signals = signal.SIGTERM, times: int = 1) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a process that runs this and is then told to stop."""
    command = [sys.executable, "-c", worker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            for _ in range(times):
                process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("times", [1, 5])
def test_what_is_still_under_way_is_ended_and_told(times: int) -> None:
    """Signals that come together are one, later ones find it at work: the handler is called once."""
    code, out, err = told(WORKER.format(HANDLER.format(True)), times=times)
    assert (code, out) == (1, "handled\n")
    assert "Requests are still running 0.1 s after SIGTERM. Stopping this worker anyway." in err


def test_one_without_requests_ends_and_says_nothing() -> None:
    assert told(WORKER.format(HANDLER.format(False))) == (1, "handled\n", "")


def test_one_that_does_not_serve_yet_ends_at_once() -> None:
    assert told(WORKER.format("")) == (1, "", "")


RINGING = """
import random, signal
import django
django.setup()
from flagadmin.management.commands import serve

serve.MAX_WAIT = 0.001  # for signals between the last look of the interpreter and the wait itself
bell, rung = serve.Wakeup(lambda: None), 0

def ring(*_):
    global rung
    rung += 1
    bell.set()

signal.signal(signal.SIGALRM, ring)
for number in range(1, 3001):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 6e-5))
    while rung < number:
        bell.wait()
    bell.wait()  # rung once, it stays so
    bell.clear()
print("ended")
"""


def test_a_signal_at_any_moment_wakes_the_serving_loop() -> None:
    """With a `threading.Event` in its place, this waits for ever."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", RINGING]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.stdout == "ended\n", ended.stderr


def test_the_serving_loop_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_WAIT", 0.001)
    bell = serve.Wakeup(lambda: None)
    bell.wait()
    bell.set()
    bell.clear()
    bell.wait()
