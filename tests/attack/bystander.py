"""Somebody who has nothing to do with the attack: how long the server lets them wait meanwhile."""

import http.client
import threading
import time
from contextlib import closing
from types import TracebackType

from tests.attack.installation import Installation
from tests.support.live_server import Client

PAUSE = 0.02  # seconds between two questions


class Bystander(threading.Thread):
    """While entered: asks, and watches the memory of the workers."""

    def __init__(self, target: Installation) -> None:
        super().__init__(daemon=True)
        self.target, self._over = target, threading.Event()
        self.times: list[float] = []
        self.failures = 0
        self.megabytes = 0.0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with closing(Client(self.target.port, self.target.keys[self.target.question.key])) as client:
                    self._ask(client)
            except (OSError, http.client.HTTPException):
                self.failures += 1

    def _ask(self, client: Client) -> None:
        _, method, path, body = self.target.question
        while not self._over.wait(PAUSE):
            began = time.perf_counter()
            status, _ = client.call(method, path, body)
            self.times.append(time.perf_counter() - began)
            self.failures += status != 200
            if len(self.times) % 10 == 0:
                self.megabytes = max(self.megabytes, self.target.worker_megabytes())

    def __enter__(self) -> "Bystander":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.join()
        self.megabytes = max(self.megabytes, self.target.worker_megabytes())

    @property
    def p99(self) -> float:
        """Milliseconds."""
        ordered = sorted(self.times)
        return ordered[int(len(ordered) * 0.99)] * 1000 if ordered else float("inf")
