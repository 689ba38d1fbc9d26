"""What ``bench_mixed_load`` notes of the server every ten seconds, and its tables."""

import os
import statistics
import time
from typing import NamedTuple

from tests.benchmarks.bench_streaming import cpu_seconds, megabytes, workers
from tests.benchmarks.mixed_traffic import Log

EVERY = 10  # seconds
SETTLED = 5 * 60  # seconds until memory must be flat


class Sample(NamedTuple):
    """``memory`` in MB, of the workers and of the parent; what they share counts once."""

    at: float
    memory: list[float]
    cpu: float
    files: int
    connections: int
    database: float  # MB


class Watch:
    def __init__(self, log: Log, group: int) -> None:
        self.log, self.group = log, group
        self.begun = time.monotonic()
        self.pids = [*sorted(workers(group)), group]
        self.samples: list[Sample] = []

    def sample(self) -> None:
        if sorted(workers(self.group)) != self.pids[:-1]:
            self.log.failed("worker", "a worker was replaced")
            self.pids = [*sorted(workers(self.group)), self.group]
        connections, size = _database()
        self.samples.append(
            Sample(
                time.monotonic() - self.begun,
                [megabytes([pid]) for pid in self.pids],
                cpu_seconds(self.pids),
                sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.pids),
                connections,
                size,
            )
        )

    def run(self, seconds: float) -> None:
        said = 0.0
        while (spent := time.monotonic() - self.begun) < seconds:
            self.sample()
            if spent >= said:
                print(_line(self.samples[-1], f"{sum(self.log.errors.values())} errors"), flush=True)
                said += 60
            time.sleep(min(EVERY, max(seconds - spent, 0)))
        self.sample()

    def report(self) -> None:
        for (kind, what), count in sorted(self.log.errors.items()):
            print(f"ERROR {count:5} × {kind}: {what}")
        print(f"{sum(self.log.errors.values())} errors")
        print(f"{'request':34}{'answers':>9}{'median ms':>11}{'p99 ms':>9}{'max ms':>9}")
        for kind, seconds in sorted(self.log.seconds.items()):
            cuts = (
                statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else seconds * 99
            )
            times = f"{cuts[49] * 1e3:11.1f}{cuts[98] * 1e3:9.1f}{max(seconds) * 1e3:9.1f}"
            print(f"{kind:34}{len(seconds):9}{times}")
        for minute in (0, 5, 10, 20, 30, 60):
            if found := [each for each in self.samples if each.at >= minute * 60 - EVERY / 2]:
                print(_line(found[0]))
        print(_line(self.samples[-1], "at the end"))
        first, last = self.samples[0], self.samples[-1]
        print(f"CPU of the server: {(last.cpu - first.cpu) / (last.at - first.at):.0%} of a core")
        for position, pid in enumerate(self.pids):
            if len(kept := [each for each in self.samples if each.at >= SETTLED]) > 2:
                slope, _ = statistics.linear_regression(
                    [each.at / 60 for each in kept], [each.memory[position] for each in kept]
                )
                name = "parent" if pid == self.group else f"worker {position + 1}"
                print(f"{name}: {slope:+.2f} MB a minute after the first five")


def _line(sample: Sample, rest: str = "") -> str:
    memory = ", ".join(f"{size:.0f}" for size in sample.memory)
    return (
        f"{sample.at / 60:5.1f} min: {memory} MB (workers, parent); {sample.files} files,"
        f" {sample.connections} connections, database {sample.database:.0f} MB {rest}"
    )


def _database() -> tuple[int, float]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), pg_database_size(current_database()) / 1e6 FROM pg_stat_activity"
            " WHERE datname = current_database()"
        )
        connections, size = cursor.fetchone()
    return connections, float(size)
