"""The real SDKs for Python and Node, which ask a server at a port of this machine."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import requests
from UnleashClient import UnleashClient
from UnleashClient.events import BaseEvent, UnleashEventType

from tests.support.live_server import PATIENCE
from tests.support.node_packages import installed
from tests.support.programs import program

APP = "sdk-check"
Context = dict[str, Any]
Results = dict[str, tuple[bool, str]]  # by flag: whether it is on, and its variant


class Sdk(UnleashClient):
    """Python's, with what it was answered whenever it asked for the flags: statuses in order."""

    def __init__(self, port: int, secret: str, mode: Any = None) -> None:
        self.answers: list[int] = []
        self.ready = threading.Event()
        super().__init__(
            url=f"http://127.0.0.1:{port}/api",
            app_name=APP,
            instance_id="py-1",
            refresh_interval=1,
            metrics_interval=1,
            custom_headers={"Authorization": secret},
            # Options of requests when it polls, of urllib3 when it is told.
            custom_options={} if mode else {"hooks": {"response": self._keep_answer}},
            cache_directory=tempfile.mkdtemp(),
            event_callback=self._keep_event,
            experimental_mode=mode,
        )

    def _keep_answer(self, answer: requests.Response, **_: Any) -> None:
        if answer.request.path_url == "/api/client/features":
            self.answers.append(answer.status_code)

    def _keep_event(self, event: BaseEvent) -> None:
        if event.event_type == UnleashEventType.READY:
            self.ready.set()

    def evaluate(self, flags: list[str], contexts: Sequence[Context]) -> list[Results]:
        return [
            {
                name: (self.is_enabled(name, dict(context)), self.get_variant(name, dict(context))["name"])
                for name in flags
            }
            for context in contexts
        ]


class NodeSdk:
    """Node's, in a process of its own (``tests/clients/unleash-client/ask.mjs``)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def evaluate(self, flags: list[str], contexts: Sequence[Context]) -> list[Results]:
        assert self._process.stdin
        print(json.dumps({"flags": flags, "contexts": [*contexts]}), file=self._process.stdin, flush=True)
        return [
            {name: (enabled, variant) for name, (enabled, variant) in answer.items()}
            for answer in self.answer()
        ]


@contextmanager
def python_sdk(port: int, secret: str, mode: Any = None) -> Iterator[Sdk]:
    """Once it has the flags."""
    client = Sdk(port, secret, mode)
    client.initialize_client()
    try:
        assert client.ready.wait(PATIENCE)
        yield client
    finally:
        client.destroy()


@contextmanager
def node_sdk(port: int, secret: str, mode: Any, counter: str = "") -> Iterator[NodeSdk]:
    """Once it has the flags. It counts 4 with the counter, an impact metric, if there is one."""
    url = f"http://127.0.0.1:{port}/api/"
    command = [program("node"), "ask.mjs", url, secret, json.dumps(mode), counter]
    with subprocess.Popen(
        command, cwd=installed("unleash-client"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            sdk = NodeSdk(process)
            assert sdk.answer() == "ready"
            yield sdk
        finally:
            process.kill()
