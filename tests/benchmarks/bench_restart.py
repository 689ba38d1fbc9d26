"""A restart of the server, as Python's SDK in streaming mode sees it: whose each wait is.

``python -m tests.benchmarks.bench_restart [RESTARTS [CONNECTED [kept]]]`` (default: 5 65). The SDK forgets its back-off after
it was connected for 60 s; with fewer seconds CONNECTED each restart makes it wait longer. With ``kept``, the socket stays open,
as systemd keeps it: connections wait instead of being refused. The floor is a process that imports Django and nothing of
flagadmin's.
"""

import logging
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from UnleashClient import UnleashClient
from UnleashClient.utils import LOGGER

from tests.support.kept_socket import serve_command
from tests.support.live_server import (
    Client,
    data_directory,
    is_ready,
    median_ms,
    reserved_port,
    wait_until,
)

WORKERS = 2
FLAG = "projects/default/features/restarts"


class Attempts(logging.Handler):
    """When the SDK tried to connect, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Connecting to stream"):
            self.times.append(time.monotonic())


class Restart(NamedTuple):
    """Seconds: until the old server has ended, until the next one answers, from its answers to the SDK's attempt, from
    that to its new state; and the attempts."""

    stop: float
    start: float
    back_off: float
    answer: float
    attempts: int


def serve(port: int, listener: socket.socket | None) -> "subprocess.Popen[bytes]":
    options, descriptors = ["--port", str(port), "--workers", str(WORKERS)], []
    command = [sys.executable, "manage.py", "serve", *options]
    if listener:
        command, descriptors = serve_command(listener, *options), [listener.fileno()]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0, pass_fds=descriptors)
    wait_until(lambda: is_ready(port))
    return server


def restarted(
    server: "subprocess.Popen[bytes]",
    port: int,
    listener: socket.socket | None,
    attempts: Attempts,
    change: Callable[[], None],
    has: Any,
) -> tuple["subprocess.Popen[bytes]", Restart]:
    attempts.times.clear()
    begun = time.monotonic()
    server.send_signal(signal.SIGTERM)
    server.wait()
    stopped = time.monotonic()
    server = serve(port, listener)
    ready = time.monotonic()
    change()
    wait_until(has)
    now, connected = time.monotonic(), attempts.times[-1]
    figures = Restart(
        stopped - begun,
        ready - stopped,
        max(0.0, connected - ready),
        now - max(connected, ready),
        len(attempts.times),
    )
    return server, figures


def main(restarts: int = 5, connected: int = 65, *, kept: bool = False) -> None:
    with data_directory() as folder, reserved_port() as port:
        from projects.models import Project
        from tests.support.cast import make_token

        Project.objects.get_or_create(id="default", defaults={"name": "Default"})
        admin, backend = make_token("admin"), make_token("backend", environment="production")
        listener = socket.create_server(("127.0.0.1", port)) if kept else None
        server = serve(port, listener)
        call(port, admin, "projects/default/features", {"name": "restarts"})
        attempts = Attempts()
        LOGGER.addHandler(attempts)
        LOGGER.setLevel(logging.INFO)
        sdk = UnleashClient(
            url=f"http://127.0.0.1:{port}/api",
            app_name="bench",
            custom_headers={"Authorization": backend},
            cache_directory=tempfile.mkdtemp(dir=folder),
            experimental_mode={"type": "streaming"},
            disable_metrics=True,
        )
        sdk.initialize_client()
        floor = median_ms(
            lambda: subprocess.run([sys.executable, "-c", "import django.db.models"], check=True), runs=5
        )
        print(f"floor, to import Django: {floor / 1000:.1f} s")
        print("stop   start  SDK's back-off  answer  attempts")
        every = []
        try:
            for _ in range(restarts):
                time.sleep(connected)
                to = "off" if sdk.is_enabled("restarts") else "on"
                server, figures = restarted(
                    server,
                    port,
                    listener,
                    attempts,
                    lambda to=to: call(port, admin, f"{FLAG}/environments/production/{to}", {}),
                    lambda to=to: sdk.is_enabled("restarts") == (to == "on"),
                )
                every.append(figures)
                show(figures)
            print("medians")
            show(Restart(*(statistics.median(column) for column in zip(*every, strict=True))))
        finally:
            sdk.destroy()
            server.terminate()
            server.wait()


def show(it: Restart) -> None:
    print(
        f"{it.stop:4.1f}   {it.start:5.1f}  {it.back_off:14.1f}  {it.answer:6.2f}  {it.attempts:8.0f}",
        flush=True,
    )


def call(port: int, secret: str, path: str, body: Any) -> None:
    client = Client(port, secret)
    status, answer = client.call("POST", f"/api/admin/{path}", body)
    client.close()
    assert status < 300, answer


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), kept=sys.argv[3:] == ["kept"])
