"""Somebody who has nothing to do with the attack: how long the server lets them wait meanwhile."""

import gc
import http.client
import time
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection

from tests.attack.installation import Installation
from tests.support.live_server import Client

PAUSE = 0.02  # seconds between two questions
AGAIN = 3  # waits
MAX_WAIT = 500.0  # milliseconds, even once
_processes = get_context("fork")  # the others would import everything again for each attack


class Bystander:
    """While entered: asks, and watches the memory of the workers.

    In a process of its own: as a thread beside the attacker's, it would measure how long these keep the interpreter.
    """

    def __init__(self, target: Installation) -> None:
        self.target = target
        self.times: list[float] = []
        self.failures = 0
        self.megabytes = 0.0

    def __enter__(self) -> "Bystander":
        self._here, there = _processes.Pipe()
        self._process = _processes.Process(target=self._watch, args=(there,), daemon=True)
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._here.send("over")
        self.times, self.failures, self.megabytes = self._here.recv()
        self._process.join()

    def _watch(self, over: Connection) -> None:
        gc.disable()  # a search for cycles would look like a pause of the server
        while not over.poll():
            try:
                with closing(Client(self.target.port, self.target.keys[self.target.question.key])) as client:
                    self._ask(client, over)
            except (OSError, http.client.HTTPException):
                self.failures += 1
        self.megabytes = max(self.megabytes, self.target.worker_megabytes())
        over.send((self.times, self.failures, self.megabytes))

    def _ask(self, client: Client, over: Connection) -> None:
        _, method, path, body = self.target.question
        while not over.poll(PAUSE) or len(self.times) < AGAIN:
            began = time.perf_counter()
            status, _ = client.call(method, path, body)
            self.times.append(time.perf_counter() - began)
            self.failures += status != 200
            if len(self.times) % 10 == 0:
                self.megabytes = max(self.megabytes, self.target.worker_megabytes())

    def waited_longer(self, allowed: float) -> bool:
        """Whether it waited longer than ``allowed`` milliseconds again and again, or once for ever.

        An attack lasts for some hundred questions or fewer. The p99 of these is the longest wait or the second longest,
        which any pause of the machine decides.
        """
        return self._longest(AGAIN) > allowed or self._longest(1) > max(allowed, MAX_WAIT)

    def _longest(self, place: int) -> float:
        """Of fewer questions, the shortest wait."""
        return sorted(self.times)[-place:][0] * 1000 if self.times else float("inf")

    def __str__(self) -> str:
        return f"waited {self._longest(1):.0f}, {self._longest(2):.0f}, {self._longest(AGAIN):.0f} ms"


def p99(times: list[float]) -> float:
    """Of times in seconds; milliseconds."""
    return sorted(times)[int(len(times) * 0.99)] * 1000 if times else float("inf")
