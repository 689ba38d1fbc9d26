"""Starts real servers for tests and benchmarks, with an empty data directory and keep-alive clients.

Run a benchmark from the repository's root: ``python -m tests.benchmarks.bench_playground``.
"""

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Any

PATIENCE = 300  # seconds after which a test fails rather than hangs
# On a busy machine, a connection may wait longer than the default timeout allows.
PATIENT = {"FLAGADMIN_DATABASE_SECONDS": "60"}


@contextmanager
def data_directory() -> Iterator[str]:
    """Sets this process's data directory to a new one. Call it before anything of Django is used."""
    with tempfile.TemporaryDirectory(prefix="flagadmin-bench-") as folder:
        os.environ["FLAGADMIN_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")
        os.environ.setdefault("FLAGADMIN_LOG_LEVEL", "WARNING")
        import django
        from django.core.management import call_command

        from flagadmin.core.server.memory import settle

        django.setup()
        settle()
        call_command("migrate", verbosity=0)
        try:
            yield folder
        finally:
            from django.db import connections

            from flagadmin.core.db.bundled import server

            connections.close_all()
            server.release(Path(folder))


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserves a port of 127.0.0.1 for a server that has not started yet.

    The port stays bound until the context ends, so only a server given this number can listen there (with
    SO_REUSEADDR, which servers set).
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        # Set only after bind: otherwise two processes could reserve the same port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield holder.getsockname()[1]


@contextmanager
def running(workers: int = 1, **environment: str) -> Iterator[int]:
    """Runs `manage.py serve` on 127.0.0.1 until the context ends. Yields the port when the server is ready.

    ``environment`` is added to this process's variables.
    """
    with started(workers, **environment) as (port, _):
        yield port


@contextmanager
def started(
    workers: int = 1, *, log: IO[bytes] | None = None, **environment: str
) -> Iterator[tuple[int, int]]:
    """Runs a server like :func:`running`. Yields its port and process group, which excludes the database.

    ``log`` gets what the server logs; without it, this process's standard error.
    """
    with reserved_port() as port:
        command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", str(workers)]
        server = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=os.environ | PATIENT | environment,
            process_group=0,
        )
        try:
            wait_until_ready(port, server)
            yield port, server.pid
        finally:
            server.terminate()
            try:
                server.wait(PATIENCE)
            finally:
                server.kill()  # it did not stop on SIGTERM; its workers end with it


def wait_until_ready(port: int, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        if is_ready(port):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not become ready")


def is_ready(port: int, path: str = "/readyz") -> bool:
    try:
        with closing(Client(port)) as client:
            return client.call("GET", path)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def descendants(kind: bytes, of: int) -> dict[int, int]:
    """The parent pid of each descendant of process ``of`` whose command line or name contains ``kind``, by pid."""
    parents, pids = {}, set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if kind in (entry / "cmdline").read_bytes() + (entry / "comm").read_bytes():
                    pids.add(int(entry.name))
        except OSError:
            continue  # the process has exited
    return {pid: parents[pid] for pid in pids if pid != of and descends(pid, parents, of)}


def descends(pid: int, parents: dict[int, int], of: int) -> bool:
    while pid in parents and pid != of:
        pid = parents[pid]
    return pid == of


def has_ended(pid: int) -> bool:
    """Also when nobody has asked yet how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def wait_until(condition: Callable[[], Any], what: str = "it") -> Any:
    """Waits until the condition returns a true value, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.02)
    return result


class Client:
    """One keep-alive connection that sends a token."""

    def __init__(self, port: int, secret: str = "", timeout: float = PATIENCE) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {"Authorization": secret} if secret else {}

    def close(self) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = self._headers | ({"Content-Type": "application/json"} if data is not None else {}) | headers
        self._connection.request(method, path, data, sent)
        response = self._connection.getresponse()
        return response.status, response.read()


@contextmanager
def held_sockets(port: int, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Opens ``count`` connections that each send ``sent`` and then nothing more."""
    with ExitStack() as stack:
        held = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE)) for _ in range(count)
        ]
        for connection in held:
            connection.sendall(sent)
        yield held


def median_ms(work: Callable[[], Any], *, runs: int = 15, warm_up: int = 2) -> float:
    """The median wall time of one call, in milliseconds."""
    for _ in range(warm_up):
        work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000
