"""Small requests that could cost much, each with the weakest key that may send it."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import quote

from tests.attack.installation import Installation
from tests.attack.resources import Attacked, beside, repeat
from tests.attack.result import Result
from tests.support.live_server import Client

USERS = "/api/admin/playground/users?environment=production"
COMPARE = "/api/admin/playground/compare"
ASSIGNED = "/api/admin/playground/assignments?environment=production&flag=dark-theme"
AT_ONCE = 6
PATIENCE = 60.0  # seconds: large files are read in a process that gives way to everybody else
CSV = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
JSON = {"Content-Encoding": "gzip"}
PACKED = {"Content-Type": "application/gzip"}
HEADER = b"userId" + b"".join(b",properties.p%d" % number for number in range(999))
SIDE = {"environment": "production"}


def comparison(contexts: object) -> bytes:
    return json.dumps({"from": SIDE, "to": SIDE, "contexts": contexts}).encode()


# What, with which key, how, with which headers.
REQUESTS: dict[str, tuple[tuple[str, str, str, bytes], dict[str, str]]] = {
    "60,000,000 commas": (("viewer", "POST", USERS, gzip.compress(b"," * 60_000_000)), CSV),
    "60,000,000 empty lines": (("viewer", "POST", USERS, gzip.compress(b"userId\n" + b"\n" * 59_000_000)), CSV),
    "60,000,000 commas assigned": (("viewer", "POST", ASSIGNED, gzip.compress(b"," * 60_000_000)), PACKED),
    "60,000,000 empty lines of JSON assigned": (
        ("viewer", "POST", ASSIGNED, gzip.compress(b'{"time":1}\n' + b"\n" * 60_000_000)), PACKED
    ),
    "60,000 users of 1,000 columns": (
        ("viewer", "POST", USERS, gzip.compress(HEADER + (b"\n" + b"," * 999) * 60_000)), CSV
    ),
    "a comparison of 15,000,000 columns": (
        ("viewer", "POST", COMPARE, gzip.compress(comparison({"csv": "," * 15_000_000}))), JSON
    ),
    "a comparison of deep lists": (
        ("viewer", "POST", COMPARE, gzip.compress(comparison({"explicit": []}).replace(b"[]", b"[" * 900 + b"]" * 900))),
        JSON,
    ),
    "a comparison of 5,000,000 lists": (
        ("viewer", "POST", COMPARE, gzip.compress(comparison({"explicit": []}).replace(b"[]", b"[" + b"[]," * 4_999_999 + b"[]]"))),
        JSON,
    ),
}  # fmt: skip


FLAGS = [f"cost-{number}" for number in range(200)]
PROJECT = "/api/admin/projects/costs"
SAMPLES = [{"labels": {"path": f"{number}"}, "value": 1} for number in range(1_000)]
IDS = ",".join(f"{number}" for number in range(3_000))


def scim_filter(number: int) -> tuple[str, str, str, Any]:
    text = f'{"(" * 2_500}userName eq "{number}"{")" * 2_500}'
    return "scim", "GET", f"/scim/v2/Users?filter={quote(text)}", None


def unknown_flags(number: int) -> tuple[str, str, str, Any]:
    toggles = {f"invented-{number}-{each}": {"yes": 1, "no": 0, "variants": {}} for each in range(9_999)}
    bucket = {"start": "2026-11-24T08:00:00Z", "stop": "2026-11-24T08:01:00Z", "toggles": toggles}
    return "frontend", "POST", "/api/frontend/client/metrics", {"appName": "web", "bucket": bucket}


def impact_series(number: int) -> tuple[str, str, str, Any]:
    series = [
        {"name": f"metric-{number}-{each}", "help": "", "type": "counter", "samples": SAMPLES}
        for each in range(9)
    ]
    return "backend", "POST", "/api/client/metrics", {"appName": "web", "impactMetrics": series}


def advanced_playground(number: int) -> tuple[str, str, str, Any]:
    body = {
        "environments": ["production"],
        "projects": ["checkout", "legacy-portal"],
        "context": {"userId": f"x{number},{IDS}"},
    }
    return "viewer", "POST", "/api/admin/playground/advanced", body


def proposed_changes(number: int) -> tuple[str, str, str, Any]:
    """Those of the next turn replace them."""
    on = {"enabled": True, "shouldActivateDisabledStrategies": bool(number % 2)}
    changes = [{"feature": flag, "action": "updateEnabled", "payload": on} for flag in FLAGS]
    return "admin", "POST", f"{PROJECT}/environments/production/change-requests", changes


def stale_flags(number: int) -> tuple[str, str, str, Any]:
    call = {"name": "find_stale_flags", "arguments": {"limit": 100}}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
    return "viewer", "POST", "/mcp", body


SMALL = {
    scim_filter: 400,
    unknown_flags: 200,
    impact_series: 202,
    advanced_playground: 400,
    proposed_changes: 200,
}
"""What must be answered or refused cheaply, and how. Each turn differs, so that nothing is kept from the last."""
MAX_CPU = {proposed_changes: 4.0}
"""Seconds of the server's processors for one, whatever else runs on the machine; 1 without an entry."""


def make_flags(target: Installation) -> None:
    """Marked as stale, so that there is something to prove."""
    data = {"features": [{"name": name} for name in FLAGS], "featureStrategies": [], "tagTypes": []}
    body = {"project": "costs", "environment": "production", "data": data}
    with closing(Client(target.port, target.keys["admin"])) as admin:
        for path, sent in (
            ("/api/admin/projects", {"id": "costs", "name": "Costs"}),
            ("/api/admin/features-batch/import", body),
            (f"{PROJECT}/stale", {"features": FLAGS, "stale": True}),
        ):
            status, answer = admin.call("POST", path, sent)
            assert status < 300, answer


def ask(target: Installation, make: Callable[[int], tuple[str, str, str, Any]], seconds: float) -> Attacked:
    """Different requests, one after the other."""
    found, turn, began, until = Attacked(), 0, target.cpu_seconds(), time.monotonic() + seconds
    while not turn or time.monotonic() < until:
        key, method, path, document = make(turn)
        with closing(Client(target.port, target.keys[key])) as client:
            sent = time.perf_counter()
            status, answer = client.call(method, path, document)
            found.saw(status, time.perf_counter() - sent, len(answer))
        turn += 1
    cpu = (target.cpu_seconds() - began) / turn
    found.told = f"{cpu:.2f} s of processors each"
    if set(found.statuses) != {SMALL[make]} or cpu > MAX_CPU.get(make, 1.0):
        found.fell = f"must be {SMALL[make]}, within {MAX_CPU.get(make, 1.0)} s"
    return found


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / (len(REQUESTS) + len(SMALL) + 2)
    make_flags(target)
    for make in SMALL:
        name = f"{make.__name__.replace('_', ' ')} in great number"
        yield beside(name, target, quiet, lambda make=make: ask(target, make, each), PATIENCE)
    key, method, path, body = stale_flags(0)
    stale = key, method, path, json.dumps(body).encode()
    yield beside(
        "3 at once: find_stale_flags", target, quiet, lambda: together(target, 3, stale, each), PATIENCE
    )
    for name, (attack, headers) in REQUESTS.items():
        sent = f"{len(attack[3]) / 1000:.1f} kB: {name}"
        yield beside(
            sent,
            target,
            quiet,
            lambda attack=attack, headers=headers: repeat(target, attack, each, **headers),
            PATIENCE,
        )
    attack, headers = REQUESTS["60,000,000 commas"]
    yield beside(
        f"{AT_ONCE} at once: 60,000,000 commas",
        target,
        quiet,
        lambda: together(target, AT_ONCE, attack, each, **headers),
        PATIENCE,
    )


def together(
    target: Installation, count: int, attack: tuple[str, str, str, bytes], seconds: float, **headers: str
) -> Attacked:
    found = Attacked()
    with ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            threads.submit(repeat, target, attack, seconds, found, **headers)
    return found
