"""Requests that cost more than they should, each with the weakest key that may send it."""

import http.client
import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

from tests.attack.bystander import Bystander, p99
from tests.attack.calls import MAX_MEGABYTES, at_once
from tests.attack.installation import Installation
from tests.attack.result import Result
from tests.support.live_server import Client

MAX_SLOWDOWN = 3  # times the quiet p99
MIN_MILLISECONDS = 50  # a wait below this is never too long: so short, noise decides
SLOWEST = 2.0  # seconds
SOCKETS = 200
WAITING = 100  # who send whole bodies at once
FLAG = "/api/admin/projects/checkout/features/dark-theme"
PLACE = f"{FLAG}/environments/production"


DOUBLING = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(60)}


def empty(times: int = 1) -> bytes:
    """A list of empty objects, of 1 MB or so many times as much."""
    return b"[" + b"{}," * (330_000 * times) + b"{}]"


def entries(member: str, before: str = "") -> bytes:
    return b"{%b%b:%b}" % (before.encode(), json.dumps(member).encode(), empty())


def frontend(**context: Any) -> tuple[str, str, str, bytes]:
    return "frontend", "POST", "/api/frontend", json.dumps({"context": context}).encode()


@cache
def bodies() -> dict[str, tuple[str, str, str, bytes]]:
    """What, with which key, how."""
    environments = json.dumps({f"e{number}": {} for number in range(60_000)}).encode()
    of_production = '"environment":"production",'
    return {
        "a patch of a flag": ("admin", "PATCH", FLAG, empty()),
        "variants": ("admin", "PUT", f"{PLACE}/variants", empty()),
        "the order of strategies": ("admin", "POST", f"{PLACE}/strategies/set-sort-order", empty()),
        "the order of environments": ("admin", "PUT", "/api/admin/environments/sort-order", environments),
        "an export's names": (
            "viewer", "POST", "/api/admin/features-batch/export", entries("features", of_production)
        ),
        "bulk metrics": ("backend", "POST", "/api/client/metrics/bulk", entries("metrics", '"applications":[],')),
        "the playground's projects": (
            "viewer", "POST", "/api/admin/playground", entries("projects", f'{of_production}"context":{{}},')
        ),
        "a long number": frontend(properties={"appVersion": "9" * 90_000, "plan": "9" * 90_000}),
        "a schema that doubles": (
            "admin", "PUT", f"{FLAG}/payload-schema",
            json.dumps({"schema": {"$defs": DOUBLING | {"s60": {}}, "$ref": "#/$defs/s0"}}).encode(),
        ),
        "many fields": frontend(properties={f"p{number}": "x" for number in range(60_000)}),
        "long addresses": frontend(remoteAddress="1." * 400_000),
        "the API's description": ("frontend", "GET", "/api/openapi.json", b""),
        "an import's entries": (
            "viewer", "POST", "/api/admin/features-batch/validate",
            b'{"project":"checkout","environment":"production","data":%b}' % entries("features"),
        ),
    }  # fmt: skip


CROWDS = (
    (f"{WAITING} bodies of 1 MB at once without a key", WAITING, 1, "/api/frontend"),
    ("20 bodies of 60 MB at once without a key", 20, 60, "/api/admin/features-batch/import"),
)


def quiet_p99(target: Installation, seconds: float) -> float:
    """What the bystander waits for when nobody attacks, in milliseconds."""
    with Bystander(target):  # the first questions compile the flags
        time.sleep(min(seconds, 5))
    with Bystander(target) as quiet:
        time.sleep(seconds)
    return p99(quiet.times)


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / (len(bodies()) + 1 + len(CROWDS))
    made = {f"1 MB: {name}": partial(repeat, target, attack, each) for name, attack in bodies().items()}
    made[f"{SOCKETS} slow bodies without a key"] = partial(hold_sockets, target, each)
    made |= {name: partial(crowd, target, count, times, path, each) for name, count, times, path in CROWDS}
    return beside_each(target, quiet, made)


@dataclass(slots=True)
class Attacked:
    """What an attacker saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds
    largest: int = 0  # bytes
    told: str = ""
    fell: str = ""  # the reason why the attack alone has succeeded

    def saw(self, status: int, seconds: float, size: int) -> None:
        self.statuses[status] += 1
        self.slowest, self.largest = max(self.slowest, seconds), max(self.largest, size)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} × {status}" for status, count in sorted(self.statuses.items()))
        answers = f"slowest {self.slowest:.2f} s, largest answer {self.largest / 1000:.0f} kB"
        return ", ".join(part for part in (counts, answers if counts else "", self.told, self.fell) if part)


def beside(
    name: str, target: Installation, quiet: float, attack: Callable[[], Attacked], patience: float = SLOWEST
) -> Result:
    """The attack, and what a bystander and the workers' memory say of it. ``patience``: for one answer, in seconds."""
    with Bystander(target) as bystander:
        found = attack()
    target.waits.extend(bystander.times)
    allowed = max(quiet * MAX_SLOWDOWN, MIN_MILLISECONDS)
    held = (
        not bystander.waited_longer(allowed)
        and bystander.megabytes < MAX_MEGABYTES
        and not bystander.failures
        and bool(found.statuses or found.told)  # else nothing was attacked
        and found.slowest < patience
        and not found.fell
        and not any(status >= 500 and status != 503 for status in found.statuses)
    )
    figures = f"{bystander} of {allowed:.0f}, {bystander.megabytes:.0f} MB, {found}"
    if bystander.failures:
        figures += f", {bystander.failures} failures of others"
    return Result(name, held, figures)


def beside_each(
    target: Installation,
    quiet: float,
    attacks: Mapping[str, Callable[[], Attacked]],
    patience: float = SLOWEST,
) -> Iterator[Result]:
    for name, attack in attacks.items():
        yield beside(name, target, quiet, attack, patience)


def all_bystanders(target: Installation, quiet: float) -> Result:
    """What the bystanders of all attacks together waited: pauses too rare to be seen beside one attack."""
    allowed, waited = max(quiet * MAX_SLOWDOWN, MIN_MILLISECONDS), p99(target.waits)
    figures = f"p99 {waited:.0f} ms of {allowed:.0f}, {len(target.waits):,} questions"
    return Result("the bystanders of all attacks", waited <= allowed, figures)


def repeat(
    target: Installation,
    attack: tuple[str, str, str, bytes],
    seconds: float,
    found: Attacked | None = None,
    **headers: str,
) -> Attacked:
    """One attacker, one request after the other."""
    key, method, path, body = attack
    found = found or Attacked()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        # The server may close a connection in the middle of a body that it refuses.
        with (
            suppress(OSError, http.client.HTTPException),
            closing(Client(target.port, target.keys.get(key, ""))) as client,
        ):
            while time.monotonic() < until:
                began = time.perf_counter()
                status, answer = client.call(method, path, body or None, **headers)
                found.saw(status, time.perf_counter() - began, len(answer))
    return found


def crowd(target: Installation, count: int, times: int, path: str, seconds: float) -> Attacked:
    """Connections that all send a whole body without a key, again and again. How long they wait is theirs.

    A crowd has machines of its own. Here it gets the processor when nobody else wants it: as a hundred threads beside the
    server and the bystander, it would keep these waiting, whatever the server does.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=os.nice, initargs=(19,)) as apart:
        return apart.submit(send_together, target.port, count, times, path, seconds).result()


def send_together(port: int, count: int, times: int, path: str, seconds: float) -> Attacked:
    found, closed, body = Attacked(), Counter[str](), empty(times)
    until = time.monotonic() + seconds

    def send(number: int) -> None:
        while time.monotonic() < until:
            try:
                with closing(Client(port, timeout=60)) as client:
                    while time.monotonic() < until:
                        found.statuses[client.call("POST", path, body)[0]] += 1
            except (OSError, http.client.HTTPException):  # refused before the whole body was sent
                closed["closed"] += 1

    at_once(count, send)
    found.told = f"{closed['closed']} closed while they sent" if closed else ""
    return found


def hold_sockets(target: Installation, seconds: float) -> Attacked:
    """Connections that announce a body and send two bytes of it."""
    request = b"POST /api/frontend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{}"
    held = []
    for _ in range(SOCKETS):
        with suppress(OSError):
            held.append(socket.create_connection(("127.0.0.1", target.port), timeout=10))
            held[-1].sendall(request)
    answers = [0]

    def ask_for_health() -> None:
        with suppress(OSError, http.client.HTTPException), closing(Client(target.port)) as client:
            answers[0] = client.call("GET", target.ready)[0]

    asking = threading.Thread(target=ask_for_health, daemon=True)
    asking.start()
    time.sleep(seconds)
    for connection in held:
        connection.close()
    asking.join(5)
    return Attacked(told=f"{len(held)} held, {target.ready} answers {answers[0] or 'nothing'}")
