"""/metrics of a real server: all workers and the main process together."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.support.live_server import Client, descendants, reserved_port, wait_until
from tests.support.metrics import Values, values_of
from tests.support.programs import program
from tests.support.serve import serve, wait_until_it_answers

pytestmark = pytest.mark.processes

TOKEN = "a-token-for-prometheus"
ALIVE = 'flagadmin_requests_total{route="healthz",method="GET",status="200"}'
REFUSED = 'flagadmin_requests_total{route="api/client/features",method="GET",status="401"}'


@pytest.fixture
def server(tmp_path: Path, install: Callable[[Path], None]) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server with two workers."""
    install(tmp_path / "data")
    with (
        reserved_port() as port,
        serve(tmp_path / "data", port, FLAGADMIN_METRICS_TOKEN=TOKEN, FLAGADMIN_LOG_LEVEL="ERROR") as process,
    ):
        wait_until_it_answers(port, process)
        yield port, process.pid


def read(port: int) -> str:
    with closing(Client(port, f"Bearer {TOKEN}")) as client:
        status, body = client.call("GET", "/metrics")
    assert status == 200, body
    return body.decode()


def processes(values: Values) -> set[str]:
    begin = "flagadmin_resident_memory_bytes{process="
    return {name.removeprefix(begin).strip('"}') for name in values if name.startswith(begin)}


def test_all_processes_count_together_and_nothing_is_lost_with_a_worker(server: tuple[int, int]) -> None:
    port, main = server
    wait_until(lambda: processes(values_of(read(port))) == {"main-1", "worker-1", "worker-2"})
    for _ in range(40):  # connections of their own, so that both workers get some
        with closing(Client(port)) as client:
            assert client.call("GET", "/api/client/features")[0] == 401
            # The first by Django, the others in the event loop.
            assert client.call("GET", "/healthz")[0] == 200
    text = read(port)
    assert values_of(text)[REFUSED] == values_of(text)[ALIVE] == 40
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    worker, *_ = [pid for pid, parent in descendants(b"spawn_main").items() if parent == main]
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: worker not in descendants(b"spawn_main"))
    wait_until(lambda: processes(after_a_kill(port)) == {"main-1", "worker-1", "worker-2"})
    assert after_a_kill(port)[REFUSED] == 40


def after_a_kill(port: int) -> Values:
    """Asks again if the connection was one of the killed worker's."""
    with suppress(OSError):
        return values_of(read(port))
    return {}
