"""`serve` on a socket that a service manager keeps open: nobody is refused during a restart."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from flagadmin.core.server.activation import FIRST_DESCRIPTOR, ActivationError, take_passed_socket
from tests.support.kept_socket import serve_command
from tests.support.live_server import PATIENCE
from tests.support.paths import ROOT
from tests.support.serve import environment


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@contextmanager
def started(listener: socket.socket, data_dir: Path, workers: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        serve_command(listener, "--port", "1", "--workers", str(workers)),
        cwd=ROOT,
        env=environment(data_dir),
        pass_fds=[listener.fileno()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def ask(listener: socket.socket) -> int:
    connection = HTTPConnection(*listener.getsockname(), timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.processes
def test_requests_wait_for_the_first_start_and_for_a_restart(
    listener: socket.socket, tmp_path: Path, install: Callable[[Path], None]
) -> None:
    install(tmp_path)
    statuses: list[int] = []

    def ask_from_now_on() -> threading.Thread:
        thread = threading.Thread(target=lambda: statuses.append(ask(listener)))
        thread.start()
        return thread

    before_the_start = ask_from_now_on()
    with started(listener, tmp_path, workers=1) as first:
        before_the_start.join(PATIENCE)
        assert statuses == [200], first.stdout and first.stdout.read()
        first.send_signal(signal.SIGTERM)
        said, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, said
    assert f"Serving at http://127.0.0.1:{listener.getsockname()[1]}/" in said, "not on the port of --port"

    between = ask_from_now_on()
    with started(listener, tmp_path, workers=2) as second:
        between.join(PATIENCE)
        assert statuses == [200, 200], second.stdout and second.stdout.read()
        assert [ask(listener) for _ in range(20)] == [200] * 20


def test_without_a_service_manager_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LISTEN_PID", raising=False)
    assert take_passed_socket() is None
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))  # for another process, which has started this one
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert take_passed_socket() is None


@pytest.mark.parametrize(
    ("number", "message"),
    [("2", "Exactly one socket"), ("0", "Exactly one socket"), ("1", "LISTEN_FDS promises")],
)
def test_what_cannot_be_served_on_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: str, message: str
) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", number)
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr("flagadmin.core.server.activation.FIRST_DESCRIPTOR", file.fileno())
        with pytest.raises(ActivationError, match=message):
            take_passed_socket()


def test_a_socket_that_does_not_listen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "1")
    with socket.socket() as idle:
        monkeypatch.setattr("flagadmin.core.server.activation.FIRST_DESCRIPTOR", os.dup(idle.fileno()))
        with pytest.raises(ActivationError, match="not a listening TCP socket"):
            take_passed_socket()
    assert FIRST_DESCRIPTOR == 3
