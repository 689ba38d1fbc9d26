"""Runs `flagadmin relay` as a process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support.live_server import PATIENCE, Client, reserved_port, wait_until

BACKEND, WIDE, WEB, OTHER = (
    f"shop:development.{name}-secret" for name in ("backend", "wide", "web", "other")
)


def flag(flag_name: str, project: str = "shop", **strategy: Any) -> dict[str, Any]:
    strategies = [{"name": "default", "parameters": {}, "constraints": [], "variants": []} | strategy]
    return {
        "name": flag_name,
        "type": "release",
        "enabled": True,
        "project": project,
        "stale": False,
        "strategies": strategies,
        "variants": [],
        "description": None,
        "impressionData": flag_name == "seen",
    }


class Relay:
    def __init__(self, port: int, process: "subprocess.Popen[bytes]", data: Path) -> None:
        self.port, self.process, self.data = port, process, data

    def call(
        self, method: str, path: str, secret: str = "", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """The status, and the body read as JSON where it is."""
        with closing(Client(self.port, secret)) as client:
            status, content = client.call(method, path, body, **headers)
        try:
            return status, json.loads(content)
        except json.JSONDecodeError:
            return status, content

    def get(self, path: str, secret: str = "", **headers: str) -> tuple[int, Any]:
        return self.call("GET", path, secret, **headers)

    def flags(self, secret: str) -> list[str] | int:
        """The names of the flags that an SDK gets, or the status if it gets none."""
        status, body = self.get("/api/client/features", secret, **{"Unleash-Client-Spec": "5.2.0"})
        return [flag["name"] for flag in body["features"]] if status == 200 else status

    def health(self) -> dict[str, Any]:
        health: dict[str, Any] = self.get("/health")[1]
        return health


@contextmanager
def relaying(upstream_port: int, data: Path, *options: str) -> Iterator[Relay]:
    """A relay that looks at its upstream each second, and reports when it is told to or stops."""
    with reserved_port() as port:
        command = [sys.executable, "-m", "flagadmin", "relay", "--port", str(port), "--data", str(data)]
        command += ["--upstream", f"http://127.0.0.1:{upstream_port}", "--poll-seconds", "1"]
        command += ["--report-seconds", "0.3", "--timeout-seconds", "1", *options]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
        ) as process:
            try:
                wait_until(lambda: is_listening(port))
                yield Relay(port, process, data)
            finally:
                process.terminate()
                process.wait(PATIENCE)


def is_listening(port: int) -> bool:
    try:
        with closing(Client(port)) as client:
            return client.call("GET", "/health")[0] == 200
    except OSError:
        return False
