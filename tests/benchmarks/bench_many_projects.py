"""Answers after one flag of very many was switched, on the slower of two workers.

``python -m tests.benchmarks.bench_many_projects [FLAGS [PROJECTS]]`` (default: 100000 50). Each line is one kind of
request: the first one ever, the slowest of some right after a switch, and the floor: the median of the same request
while nothing changes, which sends the same bytes. An empty authenticated request is the floor of all.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from statistics import median
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.live_server import Client, data_directory, started

ROUNDS = 3
CONNECTIONS = 8  # so many that each worker is asked
GZIP = {"Accept-Encoding": "gzip"}
CHANGED = "p00"
users = count()


def fill(flags: int, projects: int) -> None:
    from django.db import connection

    for number in range(projects):
        load(f"p{number:02}", flags // projects)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def asking(
    port: int, secret: str, method: str, path: str, body: Callable[[], Any] = lambda: None, **headers: str
) -> Callable[[], float]:
    """A function that sends a request on a connection of its own and returns the ms until the answer is there."""

    def ask() -> float:
        with closing(Client(port, secret)) as client:
            begun = time.perf_counter()
            status, answer = client.call(method, path, body(), **headers)
            taken = (time.perf_counter() - begun) * 1e3
        assert status == 200, (status, answer[:300])
        return taken

    return ask


def playground(projects: Any) -> Callable[[], Any]:
    """Every time about another user."""
    return lambda: {
        "environment": "production",
        "projects": projects,
        "context": {"userId": f"user-{next(users)}", "properties": {"country": "NO", "plan": "professional"}},
    }


def report(name: str, ask: Callable[[], float], switch: Callable[[], float]) -> None:
    first = max(ask() for _ in range(CONNECTIONS))
    floor = median(ask() for _ in range(CONNECTIONS))
    after = []
    for _ in range(ROUNDS):
        switch()
        after.append(max(ask() for _ in range(CONNECTIONS)))
    print(
        f"{name:42} first {first:7.0f} ms   after a switch {median(after):7.0f} ms   floor {floor:7.1f} ms",
        flush=True,
    )


def main(flags: int, projects: int) -> None:
    with data_directory():
        from tests.support.cast import make_token

        fill(flags, projects)
        sdk = make_token("backend", environment="production")
        one = make_token("backend", environment="production", projects=[CHANGED])
        admin = make_token("admin")
        with started(workers=2) as (port, group):
            states = count()

            def switch() -> float:
                on = "on" if next(states) % 2 else "off"
                path = f"/api/admin/projects/{CHANGED}/features/{CHANGED}-00000/environments/production/{on}"
                return asking(port, admin, "POST", path, dict)()

            features, spec = "/api/client/features", {"Unleash-Client-Spec": "5.2.0"}
            everything, only = playground("*"), playground([CHANGED])
            evaluate = "/api/admin/playground"
            for name, ask in {
                "an empty authenticated request": asking(
                    port, admin, "GET", "/api/admin/metrics/applications?limit=1"
                ),
                "SDK, one project, gzip": asking(port, one, "GET", features, **spec, **GZIP),
                "SDK, all projects, gzip": asking(port, sdk, "GET", features, **spec, **GZIP),
                "SDK, all projects, not compressed": asking(port, sdk, "GET", features, **spec),
                "playground, one project": asking(port, admin, "POST", evaluate, only),
                "playground, all projects": asking(port, admin, "POST", evaluate, everything),
                "playground, one project again": asking(port, admin, "POST", evaluate, only),
                "playground, all projects again": asking(port, admin, "POST", evaluate, everything),
                "/api/admin/context": asking(port, admin, "GET", "/api/admin/context"),
                "/api/openapi.json": asking(port, admin, "GET", "/api/openapi.json"),
            }.items():
                report(name, ask, switch)
            print("memory of the workers:", *(f"{size / 1e6:.0f} MB" for size in memory(group)))


def memory(group: int) -> list[int]:
    """The resident bytes of the processes of a group, largest first."""
    listed = subprocess.run(["ps", "-eo", "pgid=,rss="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return sorted((int(rss) * 1024 for pgid, rss in rows if int(pgid) == group), reverse=True)[:3]


if __name__ == "__main__":
    main(*[*map(int, sys.argv[1:]), *(100_000, 50)[len(sys.argv) - 1 :]])
