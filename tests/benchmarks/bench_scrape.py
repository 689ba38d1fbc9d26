"""What counting a request costs, and a scrape of workers that have each answered many routes. CPU time.

The floor is what prometheus_client needs to write the text alone. ``python -m tests.benchmarks.bench_scrape``
"""

import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from time import process_time
from types import SimpleNamespace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

WORKERS = 2
TIMES = 100_000
ANSWERS = (("GET", 200), ("GET", 404), ("POST", 200))


def milliseconds(work: Callable[[], object], runs: int = 15) -> float:
    """The median."""
    took = []
    for _ in range(runs):
        begun = process_time()
        work()
        took.append(process_time() - begun)
    return statistics.median(took) * 1000


def count_as_worker(folder: str, routes: int, meeting: Barrier) -> None:
    """In a process of its own, which meets the others when it has counted, and before it ends."""
    os.environ |= {"PROMETHEUS_MULTIPROC_DIR": folder, "FLAGADMIN_METRICS_TOKEN": "t" * 20}
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")
    from flagadmin.core.metrics import attach, process_name

    attach("worker")
    from flagadmin.core.http.middleware import count_request

    for route in range(routes):
        for method, status in ANSWERS:
            count_request(f"api/admin/route/{route}", method, status, 0.003)

    def count_often() -> None:
        for _ in range(TIMES):
            count_request("api/admin/route/0", "GET", 200, 0.0003)

    if process_name() == "worker-1":
        print(f"{routes} routes: counting a request {milliseconds(count_often, 3) / TIMES * 1000:.2f} µs")
    meeting.wait()
    meeting.wait()


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    for routes in (60, 150, 450):
        with tempfile.TemporaryDirectory() as folder:
            meeting = spawn.Barrier(WORKERS + 1)
            for _ in range(WORKERS):
                spawn.Process(target=count_as_worker, args=(folder, routes, meeting)).start()
            meeting.wait()
            scrape(Path(folder))
            meeting.wait()


def scrape(folder: Path) -> None:
    from flagadmin.core.metrics import AllProcesses

    ours = AllProcesses(folder)
    librarys = CollectorRegistry()
    MultiProcessCollector(librarys, str(folder))
    found = list(ours.collect())
    text = SimpleNamespace(collect=lambda: found)
    lines = generate_latest(ours).count(b"\n")
    print(
        f"  a scrape {milliseconds(lambda: generate_latest(ours)):.1f} ms for {lines:,} lines; "
        f"floor, the text alone: {milliseconds(lambda: generate_latest(text)):.1f} ms; "
        f"with prometheus_client's own collector {milliseconds(lambda: generate_latest(librarys)):.1f} ms"
    )


if __name__ == "__main__":
    main()
