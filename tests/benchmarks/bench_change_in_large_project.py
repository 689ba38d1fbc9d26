"""What one changed flag of a large project costs a worker: its next poll, delta poll and frontend request.

``python -m tests.benchmarks.bench_change_in_large_project [FLAGS [ROUNDS]]`` (default: 20000 9), in this process:
CPU of the worker and of PostgreSQL in rounds of the calibration loop, the least of some changes. The floor is the same
answer again, whose bytes are only sent: what is above it is the cost of the change. Run it in another checkout to
compare.
"""

import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.cpu import Calibration
from tests.support.live_server import data_directory

FLAGS, ROUNDS = 20_000, 9
PROJECT = "many"
CONTEXT = "userId=42&properties[country]=NO&properties[plan]=professional&properties[version]=1.20.0"


def main(flags: int = FLAGS, rounds: int = ROUNDS) -> None:
    with data_directory():
        from django.test import override_settings

        load(PROJECT, flags)
        with override_settings(ALLOWED_HOSTS=["*"]):
            measure(Requests(), rounds)


class Requests:
    """Answers the requests of SDKs with tokens of all projects."""

    def __init__(self) -> None:
        from django.test import Client

        from tests.support.cast import make_token

        backend = make_token("backend", environment="production")
        self._client = Client(headers={"Authorization": backend, "Unleash-Client-Spec": "5.2.0"})
        self._browser = Client(headers={"Authorization": make_token("frontend", environment="production")})
        self._version = ""
        # What the first request imports is not counted.
        empty = make_token("backend", projects=[], environment="production")
        Client(headers={"Authorization": empty}).get("/api/client/features")

    def poll(self) -> None:
        assert b"".join(self._client.get("/api/client/features", headers={"Accept-Encoding": "gzip"}))

    def poll_delta(self) -> None:
        answer = self._client.get("/api/client/delta", headers={"If-None-Match": self._version})
        assert answer.status_code in (200, 304)
        self._version = answer["ETag"]

    def ask_frontend(self) -> None:
        assert self._browser.get(f"/api/frontend?{CONTEXT}").content


def measure(requests: Requests, rounds: int) -> None:
    loop = Calibration().seconds_of_a_round()
    kinds: dict[str, Callable[[], None]] = {
        "poll": requests.poll,
        "delta poll": requests.poll_delta,
        "frontend request": requests.ask_frontend,
    }
    for name, ask in kinds.items():
        sys.stdout.write(f"{name}: first {cpu(ask) / loop:.1f}")
        ask()
        changed, again = [], []
        for _ in range(rounds):
            change_a_flag()
            changed.append(cpu(ask))
            again.append(cpu(ask))
        sys.stdout.write(f", after a change {min(changed) / loop:.2f}, again {min(again) / loop:.2f}\n")
        sys.stdout.flush()


_shares = count(1)


def change_a_flag() -> None:
    from projects.models import Strategy

    rollout = {"rollout": str(next(_shares) % 100), "stickiness": "default", "groupId": "changed"}
    flag = Strategy.objects.filter(flag__name=f"{PROJECT}-00500", sort_order=0)
    assert flag.update(parameters=rollout) == 1


def cpu(work: Callable[[], Any]) -> float:
    """Seconds of CPU of this process and of the database's processes, which are its session's only others."""
    before = time.process_time(), _database_seconds()
    work()
    return time.process_time() - before[0] + _database_seconds() - before[1]


def _database_seconds() -> float:
    """Of the backend of this process's connection, without threads of its own."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
