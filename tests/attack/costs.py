"""Small requests that could cost much, each with the weakest key that may send it."""

import gzip
import io
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow.parquet import write_table

from tests.attack.calls import at_once
from tests.attack.installation import Installation
from tests.attack.resources import Attacked, beside_each, repeat
from tests.attack.result import Result

USERS = "/api/admin/playground/users?environment=production"
COMPARE = "/api/admin/playground/compare"
ASSIGNED = "/api/admin/playground/assignments?environment=production&flag=dark-theme"
ANALYZED = (
    "/api/admin/projects/checkout/features/dark-theme/analyses?environment=production&name=Costs&mean=revenue"
    "&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
)
PROJECT = "/api/admin/projects/costs"
AT_ONCE = 6
PATIENCE = 60.0  # seconds: large files are read in a process that gives way to everybody else
PACKED = {"Content-Encoding": "gzip"}
CSV = PACKED | {"Content-Type": "text/csv"}
FILE = {"Content-Type": "application/gzip"}
PARQUET = PACKED | {"Content-Type": "application/vnd.apache.parquet"}
COMMAS = "60,000,000 commas"


def compared(contexts: bytes) -> bytes:
    side = b'{"environment":"production"}'
    return b'{"from":%b,"to":%b,"contexts":%b}' % (side, side, contexts)


# What, where, its unpacked body, and with which headers. The viewer sends it.
LARGE: dict[str, tuple[str, Callable[[], bytes], dict[str, str]]] = {
    COMMAS: (USERS, lambda: b"," * 60_000_000, CSV),
    "60,000,000 empty lines": (USERS, lambda: b"userId\n" + b"\n" * 59_000_000, CSV),
    f"{COMMAS} assigned": (ASSIGNED, lambda: b"," * 60_000_000, FILE),
    f"{COMMAS} analyzed": (ANALYZED, lambda: b"," * 60_000_000, FILE),
    "60,000,000 empty lines of JSON assigned": (ASSIGNED, lambda: b'{"time":1}\n' + b"\n" * 60_000_000, FILE),
    "20,000,000 rows of 9,000 characters in 50 kB of Parquet": (ASSIGNED, lambda: parquet("x" * 9_000), PARQUET),
    "200,000 rows of 20 MB in Parquet": (ASSIGNED, lambda: parquet("x" * 20_000_000, 200_000), PARQUET),
    "60,000 users of 1,000 columns": (USERS, lambda: columns(999) + (b"\n" + b"," * 999) * 60_000, CSV),
    "a comparison of 15,000,000 columns": (
        COMPARE, lambda: compared(b'{"csv":"%b"}' % (b"," * 15_000_000)), PACKED
    ),
    "a comparison of deep lists": (
        COMPARE, lambda: compared(b'{"explicit":%b}' % (b"[" * 900 + b"]" * 900)), PACKED
    ),
    "a comparison of 5,000,000 lists": (
        COMPARE, lambda: compared(b'{"explicit":[%b[]]}' % (b"[]," * 4_999_999)), PACKED
    ),
}  # fmt: skip


def parquet(text: str, rows: int = 20_000_000) -> bytes:
    """The same text in each row, once in the file."""
    file = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    write_table(pa.table({"time": column}), file)
    return file.getvalue()


def columns(count: int) -> bytes:
    return b"userId" + b"".join(b",properties.p%d" % number for number in range(count))


FLAGS = [f"cost-{number}" for number in range(200)]
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
    projects, context = ["checkout", "legacy-portal"], {"userId": f"x{number},{IDS}"}
    body = {"environments": ["production"], "projects": projects, "context": context}
    return "viewer", "POST", "/api/admin/playground/advanced", body


def proposed_changes(number: int) -> tuple[str, str, str, Any]:
    """Those of the next turn replace them."""
    on = {"enabled": True, "shouldActivateDisabledStrategies": bool(number % 2)}
    changes = [{"feature": flag, "action": "updateEnabled", "payload": on} for flag in FLAGS]
    return "admin", "POST", f"{PROJECT}/environments/production/change-requests", changes


def stale_flags(number: int) -> tuple[str, str, str, Any]:
    call = {"name": "find_stale_flags", "arguments": {"limit": 100}}
    return (
        "viewer",
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call},
    )


SMALL = {
    scim_filter: 400, unknown_flags: 200, impact_series: 202, advanced_playground: 400, proposed_changes: 200,
}  # fmt: skip
"""What must be answered or refused cheaply, and how. Each turn differs, so that nothing is kept from the last."""
MAX_CPU = {proposed_changes: 4.0, unknown_flags: 0.5, impact_series: 0.5}
"""Seconds of the server's processors for one, whatever else runs on the machine; 1 without an entry."""


def make_flags(target: Installation) -> None:
    """Marked as stale, so that there is something to prove."""
    data = {"features": [{"name": name} for name in FLAGS], "featureStrategies": [], "tagTypes": []}
    body = {"project": "costs", "environment": "production", "data": data}
    for path, sent in (
        ("/api/admin/projects", {"id": "costs", "name": "Costs"}),
        ("/api/admin/features-batch/import", body),
        (f"{PROJECT}/stale", {"features": FLAGS, "stale": True}),
    ):
        status, answer = target.call("admin", "POST", path, sent)
        assert status < 300, answer


def ask(target: Installation, make: Callable[[int], tuple[str, str, str, Any]], seconds: float) -> Attacked:
    """Different requests, one after the other."""
    found, turn, began, until = Attacked(), 0, target.cpu_seconds(), time.monotonic() + seconds
    while not turn or time.monotonic() < until:
        request = make(turn)
        sent = time.perf_counter()
        status, answer = target.call(*request)
        found.saw(status, time.perf_counter() - sent, len(answer))
        turn += 1
    cpu = (target.cpu_seconds() - began) / turn
    found.told = f"{cpu:.2f} s of processors each"
    if set(found.statuses) != {SMALL[make]} or cpu > MAX_CPU.get(make, 1.0):
        found.fell = f"must be {SMALL[make]}, within {MAX_CPU.get(make, 1.0)} s"
    return found


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / (len(LARGE) + len(SMALL) + 2)
    make_flags(target)
    made = {
        f"{make.__name__.replace('_', ' ')} in great number": partial(ask, target, make, each)
        for make in SMALL
    }
    key, method, url, body = stale_flags(0)
    stale = key, method, url, json.dumps(body).encode()
    made["3 at once: find_stale_flags"] = partial(together, target, 3, stale, each)
    for name, (path, unpacked, headers) in LARGE.items():
        attack = "viewer", "POST", path, gzip.compress(unpacked())
        told = f"{len(attack[3]) / 1000:.1f} kB: {name}"
        made[told] = partial(repeat, target, attack, each, **headers)
        if name == COMMAS:
            made[f"{AT_ONCE} at once: {name}"] = partial(together, target, AT_ONCE, attack, each, **headers)
    return beside_each(target, quiet, made, PATIENCE)


def together(
    target: Installation, count: int, attack: tuple[str, str, str, bytes], seconds: float, **headers: str
) -> Attacked:
    found = Attacked()
    at_once(count, lambda _: repeat(target, attack, seconds, found, **headers))
    return found
