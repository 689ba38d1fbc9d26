"""`manage.py serve` as a process: starting, answering requests, and stopping on SIGTERM."""

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.management.commands.serve import make_local_url
from tests.support.examples import first_every_day
from tests.support.live_server import PATIENCE, descendants, reserved_port, wait_until
from tests.support.serve import serve, wait_until_it_answers
from tests.support.served import Served

pytestmark = pytest.mark.processes


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, dict(refusal.headers), refusal.read()


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return list(descendants(b"flagadmin-work", process.pid))


def serves(worker: int) -> bool:
    """It no longer leaves signals to Python, which every interpreter does that is just starting."""
    status = Path(f"/proc/{worker}/status").read_text()
    return bool(int(status.partition("SigBlk:")[2].split()[0], 16) & 1 << signal.SIGINT - 1)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    Cluster(folder, durable=False).stop()


@pytest.fixture
def data_dir(empty: Path, install: Callable[[Path], None]) -> Path:
    """Of a server that has been started before."""
    install(empty)
    return empty


def test_serves_an_empty_folder_and_stops_clean_when_told(empty: Path, port: int) -> None:
    with serve(empty, port, workers=1, INIT_ADMIN_API_TOKENS="*:*.unsafe-for-this-test") as process:
        try:
            assert process.stdout
            said = list(
                takewhile(lambda line: line != f"Serving at http://127.0.0.1:{port}/\n", process.stdout)
            )
            assert get(port, "/api/admin/projects", Authorization="*:*.wrong")[0] == 401
            status, headers, body = get(
                port,
                "/api/admin/nosuch",
                Authorization="*:*.unsafe-for-this-test",
                **{"X-Request-Id": "trace-12345"},
            )
            assert (status, json.loads(body)["name"]) == (404, "NotFoundError")
            assert headers["x-request-id"] == "trace-12345"
        finally:
            process.send_signal(signal.SIGTERM)
            said += process.communicate(timeout=PATIENCE)[0].splitlines()
    assert process.returncode == 0, said
    assert any(json.loads(line).get("requestId") == "trace-12345" for line in said if line.startswith("{"))
    assert any(line.startswith("The database is empty: creating") for line in said)
    assert not Cluster(empty, durable=False).is_listening()


@pytest.mark.parametrize("number", first_every_day([signal.SIGTERM, signal.SIGINT]))
def test_names_a_wrong_token_and_stops_when_all_its_processes_are_told(
    data_dir: Path, port: int, number: signal.Signals
) -> None:
    """And told again: a terminal (Ctrl+C) and service managers tell all, then `serve` tells its workers."""
    with serve(data_dir, port, INIT_ADMIN_API_TOKENS="not a key") as process:
        wait_until_it_answers(port, process)
        wait_until(lambda: [serves(worker) for worker in workers_of(process)] == [True, True])
        # `serve` waits for this one, and so is still there to be told again.
        held = workers_of(process)[0]
        os.kill(held, signal.SIGSTOP)
        os.killpg(process.pid, number)
        os.killpg(process.pid, number)
        os.kill(held, signal.SIGCONT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "still running" not in said
    assert "Traceback" not in said
    assert "INIT_ADMIN_API_TOKENS, token 1 is not taken" in said
    assert "not a key" not in said


def test_nothing_of_it_is_left_when_it_is_killed(data_dir: Path, port: int) -> None:
    with serve(data_dir, port) as process:
        wait_until_it_answers(port, process)
        process.kill()
        process.wait()
        # Ends when the last worker has let go of it.
        process.communicate(timeout=PATIENCE)
    # A process lets go of one thing after the other.
    wait_until(lambda: not is_listening(port))
    wait_until(lambda: not Cluster(data_dir, durable=False).is_listening())


def test_periodic_tasks_go_on_in_another_process_when_theirs_is_killed(served: Served) -> None:
    [killed] = descendants(b"flagadmin-tasks", served.pid)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: {*descendants(b"flagadmin-tasks", served.pid)} - {killed})


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_says_so_when_the_port_is_taken(empty: Path, command: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serve(empty, port, command) as process:
            said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "/login/link/" not in said
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in said


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://localhost:8000"),
        ("::", "http://localhost:8000"),
        ("::1", "http://[::1]:8000"),
    ],
)
def test_links_have_an_address_that_answers(host: str, address: str) -> None:
    assert make_local_url(host, 8000) == address
