"""Real servers for tests and benchmarks: an empty data directory, real workers, keep-alive connections.

Run a benchmark from the repository's root: ``python -m tests.benchmarks.bench_playground``.
"""

import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def data_directory() -> Iterator[str]:
    """Points this process's settings at a fresh data directory; call before anything of Django's is used."""
    with tempfile.TemporaryDirectory(prefix="flagadmin-bench-") as folder:
        os.environ["FLAGADMIN_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")
        os.environ.setdefault("FLAGADMIN_LOG_LEVEL", "WARNING")
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        try:
            yield folder
        finally:
            from django.db import connections

            from flagadmin.embedded import server

            connections.close_all()
            server.release(Path(folder))


def free_port() -> int:
    """A port of 127.0.0.1 nobody listens on, below those the system gives to outgoing connections.

    Such a one could be taken again before the server that is to have it has started.
    """
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def running(workers: int = 1, **environment: str) -> Iterator[int]:
    """`manage.py serve` on a free port of 127.0.0.1, ready to answer; ended at the end. Gives the port.

    ``environment`` adds to this process's own variables.
    """
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", str(workers)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | environment)
    try:
        _wait(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(60)


def _wait(port: int, server: subprocess.Popen, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with closing(Client(port)) as client:
                if client.call("GET", "/readyz")[0] == 200:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the server did not become ready")


class Client:
    """One keep-alive connection with a key."""

    def __init__(self, port: int, secret: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": secret} if secret else {}

    def close(self) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = self._headers | ({"Content-Type": "application/json"} if data is not None else {}) | headers
        self._connection.request(method, path, data, sent)
        response = self._connection.getresponse()
        return response.status, response.read()


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
