"""Requests from a table, again and again, and what none of their answers may be."""

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tests.attack.installation import MARKER, PASSWORD, Installation
from tests.attack.result import Result
from tests.support.live_server import is_ready

T = TypeVar("T")

INSIDERS = ("admin", "editor", "viewer", "backend", "frontend")  # who may read the project "sealed"
FRAMES = ("Traceback (most", "site-packages", "psycopg.", "pbkdf2_sha256$", "argon2$")  # never in an answer
MAX_MEGABYTES = 1000
LOGGED = 4_000  # bytes of the log that are shown after a fault
ANY_BUT_FAULTS = (range(200, 500), (503,))
ODD: tuple[Any, ...] = (
    None, 7, -1, 2**70, 1e308, True, [], {}, "", " ", "\0", "x" * 20_000, "é😀\u202e\u200b", "a@b", "' OR 1=1 --", "../..",
    "%00", [["a"]], {"a": {"b": []}},
)  # fmt: skip
"""Values that no member has."""


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
        status, answer = self.target.call(call.key, call.method, call.path, call.body, **call.headers)
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


def imported(names: Sequence[str]) -> dict[str, Any]:
    """The body of an import of these flags into checkout, each with a strategy in production."""
    data = {
        "features": [{"name": name} for name in names],
        "featureStrategies": [{"name": "default", "featureName": name} for name in names],
        "tagTypes": [],
    }
    return {"project": "checkout", "environment": "production", "data": data}


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Calls ``work`` with each number below ``count``, all at one moment."""
    gate = threading.Barrier(count)

    def run(number: int) -> T:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))
