"""Measures the import beside its floor: a bare COPY of the same rows into the same tables, in the same run.

    python -m tests.benchmarks.bench_import [FLAGS ...]

Each flag has one strategy with two constraints and is switched on; 50,000 of them are 37 MB. Over HTTP, against a
server of its own with two workers.
"""

import http.client
import os
import re
import statistics
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson

from tests.support.live_server import Client, data_directory, descendants, running

QUESTION = {"environment": "production", "projects": ["other"], "context": {"userId": "7", "country": "NO"}}
SIZES = (1_000, 5_000, 50_000)
TABLES = (
    "projects_flag",
    "projects_flagenvironment",
    "projects_strategy",
    "projects_lifecyclestage",
    "audit_auditevent",
)


def make_body(flags: int, *, project: str = "default", start: int = 0) -> bytes:
    """What an export of that many flags looks like."""
    features: list[Any] = []
    strategies: list[Any] = []
    switches: list[Any] = []
    for index in range(start, start + flags):
        name = f"bench-{index:06d}"
        features.append(
            {
                "name": name,
                "description": f"Generated flag {index}",
                "type": "release",
                "project": "source",
                "stale": False,
                "impressionData": False,
                "archived": False,
            }
        )
        strategies.append(_strategy(name, index))
        switches.append(
            {
                "enabled": True,
                "featureName": name,
                "environment": "development",
                "variants": [],
                "name": name,
            }
        )
    data = {
        "features": features,
        "featureStrategies": strategies,
        "featureEnvironments": switches,
        "tagTypes": [],
    }
    return orjson.dumps({"project": project, "environment": "development", "data": data})


def _strategy(name: str, index: int) -> dict[str, Any]:
    common = {"inverted": False, "caseInsensitive": False}
    return {
        "name": "flexibleRollout",
        "id": f"00000000-0000-4000-8000-{index:012d}",
        "featureName": name,
        "title": None,
        "parameters": {"groupId": name, "rollout": str(index % 101), "stickiness": "default"},
        "constraints": [
            {
                "values": [str(index + n) for n in range(3)],
                "operator": "IN",
                "contextName": "userId",
                **common,
            },
            {"values": ["web"], "operator": "STR_STARTS_WITH", "contextName": "appName", **common},
        ],
        "variants": [],
        "disabled": False,
        "segments": [],
    }


def post(port: int, path: str, body: bytes, key: str) -> float:
    """Seconds until the answer is there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {"Authorization": key, "Content-Type": "application/json"}
    began = time.perf_counter()
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    answer = response.read()
    seconds = time.perf_counter() - began
    assert response.status == 200, answer[:1000]
    return seconds


def empty() -> None:
    """Nobody's flags: everything an import wrote is removed, in every table."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SET session_replication_role = replica"
        )  # past the append-only trigger, in a scratch database
        cursor.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
        cursor.execute("SET session_replication_role = origin")


def bare_copy(dumps: dict[str, bytes]) -> float:
    """Seconds to COPY these rows into their tables in one transaction, with all triggers and foreign keys."""
    from django.db import connection, transaction

    began = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        for table, rows in dumps.items():
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(rows)
    return time.perf_counter() - began


def dump() -> dict[str, bytes]:
    from django.db import connection

    dumps = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            with cursor.copy(f"COPY {table} TO STDOUT") as copy:
                dumps[table] = b"".join(copy)
    return dumps


class Memory(threading.Thread):
    """Watches while it is entered: ``most`` is the most any process of the server (not of the database) has held, in MB.

    A large import has a process of its own, which is gone when it is over.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._over = 0, threading.Event()

    def __enter__(self) -> "Memory":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.2):
            self.most = max(self.most, memory_of_workers())


def memory_of_workers() -> int:
    """Of the one that has held most, in MB."""
    most = 0
    for pid in descendants(b"python", os.getpid()):
        with suppress(OSError):  # the process has exited
            held = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            most = max(most, int(held[1]) // 1024 if held else 0)
    return most


def measure(port: int, key: str, flags: int) -> None:
    path, body = "/api/admin/features-batch/", make_body(flags)
    empty()
    validated = post(port, path + "validate", body, key)
    with Memory() as memory:
        first = post(port, path + "import", body, key)
    again = post(port, path + "import", body, key)
    rows = dump()
    empty()
    copied = bare_copy(rows)
    print(
        f"{flags:>7,} flags {len(body) / 1e6:5.1f} MB | validate {validated:6.2f} s | import {first:6.2f} s"
        f" | the same again {again:6.2f} s | bare COPY {copied:6.2f} s | {first / copied:4.1f} times the COPY"
        f" | {memory.most:,} MB at most"
    )


def beside_playground(port: int, key: str, flags: int) -> None:
    """The playground of another project, 1,000 flags, asked 40 times a second: alone, and while the import runs."""
    alone = playground_ms(port, key, until=threading.Timer(4, lambda: None))
    importing = threading.Thread(
        target=post, args=(port, "/api/admin/features-batch/import", make_body(flags), key)
    )
    meanwhile = playground_ms(port, key, until=importing)
    print(
        f"playground of another project: median {statistics.median(alone):.0f} ms alone,"
        f" {statistics.median(meanwhile):.0f} ms while {flags:,} flags go in"
        f" (95th percentile {statistics.quantiles(alone, n=20)[-1]:.0f} and"
        f" {statistics.quantiles(meanwhile, n=20)[-1]:.0f} ms; {len(meanwhile)} requests)"
    )


def playground_ms(port: int, key: str, *, until: threading.Thread) -> list[float]:
    """What each request took while ``until`` was running, asked by four clients."""
    times: list[float] = []

    def ask() -> None:
        with closing(Client(port, key)) as client:
            while until.is_alive():
                began = time.perf_counter()
                status, _ = client.call("POST", "/api/admin/playground", QUESTION)
                assert status == 200
                times.append((time.perf_counter() - began) * 1000)
                time.sleep(0.1)

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for thread in (until, *clients):
        thread.start()
    for thread in (until, *clients):
        thread.join()
    return times


def allow_skipping_triggers() -> None:
    """Lets the application's role set `session_replication_role`, in the benchmark's data directory."""
    import psycopg
    from django.db import connection

    from flagadmin.core.db.bundled.programs import APPLICATION, SUPERUSER

    parameters = connection.get_connection_params()
    with psycopg.connect(host=parameters["host"], user=SUPERUSER, dbname=parameters["dbname"]) as superuser:
        superuser.execute(f"GRANT SET ON PARAMETER session_replication_role TO {APPLICATION}")


def main(sizes: list[int]) -> None:
    with data_directory():
        allow_skipping_triggers()
        from tests.benchmarks.bench_playground import load
        from tests.support.cast import make_token

        key = make_token("admin")
        with running(workers=2) as port:
            for flags in sizes:
                measure(port, key, flags)
            load("other", 1_000)
            beside_playground(port, key, max(sizes))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or list(SIZES))
