"""Requests that cost more than they should, each with the weakest key that may send it."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from tests.attack.bystander import Bystander
from tests.attack.installation import Installation
from tests.attack.result import Result
from tests.live import Client

MOST_SLOWER = 3  # times the quiet p99
MOST_MEGABYTES = 1000
LEAST_MILLISECONDS = 50  # a p99 below this is never too slow: so short, noise decides
SOCKETS = 200
FLAG = "/api/admin/projects/checkout/features/dark-theme"
PLACE = f"{FLAG}/environments/production"
EMPTY = b"[" + b"{}," * 330_000 + b"{}]"


def entries(member: str, before: str = "") -> bytes:
    return b"{%b%b:%b}" % (before.encode(), json.dumps(member).encode(), EMPTY)


# What, with which key, how.
BODIES: dict[str, tuple[str, str, str, bytes]] = {
    "a patch of a flag": ("admin", "PATCH", FLAG, EMPTY),
    "variants": ("admin", "PUT", f"{PLACE}/variants", EMPTY),
    "the order of strategies": ("admin", "POST", f"{PLACE}/strategies/set-sort-order", EMPTY),
    "the order of environments": (
        "admin", "PUT", "/api/admin/environments/sort-order",
        json.dumps({f"e{number}": {} for number in range(60_000)}).encode(),
    ),
    "an export's names": (
        "viewer", "POST", "/api/admin/features-batch/export", entries("features", '"environment":"production",')
    ),
    "bulk metrics": ("backend", "POST", "/api/client/metrics/bulk", entries("metrics", '"applications":[],')),
    "the playground's projects": (
        "viewer", "POST", "/api/admin/playground", entries("projects", '"environment":"production","context":{},')
    ),
    "a long number": (
        "frontend", "POST", "/api/frontend",
        json.dumps({"context": {"properties": {"appVersion": "9" * 90_000, "plan": "9" * 90_000}}}).encode(),
    ),
    "many fields": (
        "frontend", "POST", "/api/frontend",
        json.dumps({"context": {"properties": {f"p{number}": "x" for number in range(60_000)}}}).encode(),
    ),
    "long addresses": (
        "frontend", "POST", "/api/frontend", json.dumps({"context": {"remoteAddress": "1." * 400_000}}).encode(),
    ),
    "the API's description": ("frontend", "GET", "/api/openapi.json", b""),
    "an import's entries": (
        "viewer", "POST", "/api/admin/features-batch/validate",
        b'{"project":"checkout","environment":"production","data":%b}' % entries("features"),
    ),
}  # fmt: skip


def attacks(target: Installation, seconds: float) -> Iterator[Result]:
    with Bystander(target):  # the first questions compile the flags
        time.sleep(seconds)
    with Bystander(target) as quiet:
        time.sleep(seconds)
    yield Result("a quiet playground", not quiet.failures, f"p99 {quiet.p99:.0f} ms")
    for name, attack in BODIES.items():
        yield beside(
            f"1 MB: {name}", target, quiet.p99, lambda attack=attack: repeat(target, attack, seconds)
        )
    yield beside("200 slow bodies without a key", target, quiet.p99, lambda: hold_sockets(target, seconds))


def beside(name: str, target: Installation, quiet: float, attack: Callable[[], str]) -> Result:
    """The attack, and what a bystander and the workers' memory say of it."""
    with Bystander(target) as bystander:
        told = attack()
    allowed = max(quiet * MOST_SLOWER, LEAST_MILLISECONDS)
    held = bystander.p99 <= allowed and bystander.megabytes < MOST_MEGABYTES and not bystander.failures
    figures = f"p99 {bystander.p99:.0f} ms of {allowed:.0f}, {bystander.megabytes:.0f} MB, {told}"
    if bystander.failures:
        figures += f", {bystander.failures} failures of others"
    return Result(name, held, figures)


def repeat(target: Installation, attack: tuple[str, str, str, bytes], seconds: float) -> str:
    """One attacker, one request after the other."""
    key, method, path, body = attack
    statuses: dict[int, int] = {}
    slowest, largest, until = 0.0, 0, time.monotonic() + seconds
    with closing(Client(target.port, target.keys[key])) as client:
        while time.monotonic() < until:
            began = time.perf_counter()
            status, answer = client.call(method, path, body or None)
            slowest, largest = max(slowest, time.perf_counter() - began), max(largest, len(answer))
            statuses[status] = statuses.get(status, 0) + 1
    told = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    return f"{told}, slowest {slowest:.2f} s, largest answer {largest / 1000:.0f} kB"


def hold_sockets(target: Installation, seconds: float) -> str:
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
            answers[0] = client.call("GET", "/healthz")[0]

    asking = threading.Thread(target=ask_for_health, daemon=True)
    asking.start()
    time.sleep(seconds)
    for connection in held:
        connection.close()
    asking.join(5)
    return f"{len(held)} held, /healthz answers {answers[0] or 'nothing'}"
