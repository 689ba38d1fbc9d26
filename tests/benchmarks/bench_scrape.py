"""What counting a request costs, and a scrape of three processes that have each answered many routes. CPU time.

``python -m tests.benchmarks.bench_scrape``
"""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

from flagadmin.metrics import Counter, Histogram
from flagadmin.metrics.instruments import Instrument
from flagadmin.metrics.store import Store
from flagadmin.metrics.text import Exposition

REQUESTS = Counter("requests_total", "Requests.", "route", "method", "status")
SECONDS = Histogram("request_seconds", "Their time.", "route", "method")
ROUTES = [f"api/admin/route/{number}" for number in range(500)]
TIMES = 100_000
PROCESSES = 3


def count(route: str) -> None:
    REQUESTS.inc(route, "GET", "200")
    SECONDS.observe(0.003, route, "GET")


def seconds(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return process_time() - begun


def count_often() -> None:
    for _ in range(TIMES):
        count(ROUTES[0])


def main() -> None:
    print(f"counting a request, off: {seconds(count_often) / TIMES * 1e6:.2f} µs")
    for routes in (40, 150, 500):
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(PROCESSES):
                Instrument.store = Store(Path(folder), "worker")
                for route in ROUTES[:routes]:
                    count(route)
                    REQUESTS.inc(route, "GET", "404")
            counting = seconds(count_often) / TIMES * 1e6
            exposition = Exposition(Path(folder))
            lines = len(exposition.text().splitlines())
            scrape = statistics.median(seconds(exposition.text) for _ in range(15)) * 1000
        print(f"{routes} routes: counting {counting:.2f} µs, a scrape {scrape:.1f} ms for {lines:,} lines")


if __name__ == "__main__":
    main()
