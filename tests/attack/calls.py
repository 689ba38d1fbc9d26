"""Requests from a table, again and again, and what none of their answers may be."""

import http.client
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.attack.installation import MARKER, PASSWORD, Installation
from tests.attack.resources import MAX_MEGABYTES
from tests.attack.result import Result
from tests.support.live_server import Client, is_ready

INSIDERS = ("admin", "editor", "viewer", "backend", "frontend")  # who may read the project "sealed"
FRAMES = ("Traceback (most", "site-packages", "psycopg.", "pbkdf2_sha256$", "argon2$")  # never in an answer
LOGGED = 4_000  # bytes of the log that are shown after a fault
ANY_BUT_FAULTS = (range(200, 500), (503,))


class Call(NamedTuple):
    """``key`` names a key of the installation; "" sends none."""

    key: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}
    statuses: Sequence[int] = ()  # empty: any but a fault


@dataclass(slots=True)
class Verdict:
    """What the answers were, and what was wrong with them."""

    target: Installation
    slowest_allowed: float = 5.0  # seconds
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def send(self, call: Call) -> tuple[int, bytes]:
        began = time.perf_counter()
        try:
            with closing(Client(self.target.port, self.target.keys.get(call.key, ""))) as client:
                status, answer = client.call(call.method, call.path, call.body, **call.headers)
        except (OSError, http.client.HTTPException) as error:
            status, answer = 599, repr(error).encode()
        self.saw(call, status, answer, time.perf_counter() - began)
        return status, answer

    def saw(self, call: Call, status: int, answer: bytes, seconds: float = 0) -> None:
        self.statuses[status] += 1
        self.slowest = max(self.slowest, seconds)
        place = f"{call.method} {call.path[:100]} with {call.key or 'no'} key: {status}"
        if not any(status in allowed for allowed in ([call.statuses] if call.statuses else ANY_BUT_FAULTS)):
            self.fault(f"{place} {answer[:200]!r}")
        if seconds > self.slowest_allowed:
            self.fault(f"{place} after {seconds:.1f} s")
        sent = f"{call.path} {call.body} {call.headers}"
        hidden = [*FRAMES, *secrets(self.target), *([] if call.key in INSIDERS else [MARKER])]
        for text in hidden:
            if text.encode() in answer and text not in sent:
                self.fault(f"{place} tells {text[:24]}")

    def fault(self, told: str) -> None:
        if told not in self.faults:
            self.faults.append(told)

    def result(self, name: str, figures: str = "") -> Result:
        """Looks at the log and the server too."""
        self._look_at_log()
        if not is_ready(self.target.port, self.target.ready):
            self.fault("the server is not ready afterwards")
        if (megabytes := self.target.worker_megabytes()) > MAX_MEGABYTES:
            self.fault(f"{megabytes:.0f} MB in a worker")
        counts = ", ".join(f"{count} × {status}" for status, count in sorted(self.statuses.items()))
        told = [counts, f"slowest {self.slowest:.2f} s, {megabytes:.0f} MB", figures]
        if self.faults:
            print(self.target.log.read_bytes()[-LOGGED:].decode(errors="replace"), file=sys.stderr)
            told.append(f"{len(self.faults)} faults: {'; '.join(self.faults[:5])}")
        return Result(name, not self.faults, ", ".join(filter(None, told)))

    def _look_at_log(self) -> None:
        log = self.target.log.read_bytes()
        for text in secrets(self.target):
            if text.encode() in log:
                self.fault(f"the log has {text[:24]}")


def secrets(target: Installation) -> list[str]:
    """What no answer and no line of the log may have. Of keys, only the end is secret."""
    ends = [re.split("[:.]", key)[-1] for key in target.keys.values()]
    made = (target.folder / "secret_key").read_text().strip()
    return [*ends, *target.sessions.values(), *target.links.values(), PASSWORD, made]


def judge(
    name: str,
    target: Installation,
    calls: Iterable[Call],
    seconds: float,
    *,
    then: Callable[[Verdict], None] | None = None,
    slowest: float = 5.0,
) -> Result:
    """Sends the whole table once at least, and again until the time is over."""
    verdict, table, until = Verdict(target, slowest), list(calls), time.monotonic() + seconds
    while True:
        for call in table:
            verdict.send(call)
        if time.monotonic() > until:
            break
    if then:
        then(verdict)
    return verdict.result(name)
