"""The first poll after an import into a database whose statistics are missing or of empty tables.

``python -m tests.benchmarks.bench_first_poll [FLAGS]`` (default: 19500), in this process; best of some polls without
caches, beside the same with fresh statistics (the floor).
"""

import sys
import time
from collections.abc import Callable

from tests.benchmarks.bench_playground import load
from tests.support.live_server import data_directory

FLAGS, ROUNDS = 19_500, 3


def main() -> None:
    flags = int(sys.argv[1]) if len(sys.argv) > 1 else FLAGS
    with data_directory():
        from tests.support.examined_rows import analyze, clear_statistics

        analyze()
        load("many", flags)
        _report("statistics of empty tables", flags)
        clear_statistics()
        _report("no statistics", flags)
        analyze()
        _report("fresh statistics", flags)


def _report(statistics: str, flags: int) -> None:
    seconds = min(_seconds(_poll) for _ in range(ROUNDS))
    sys.stdout.write(f"{flags:,} flags, {statistics}: {seconds:.2f} s\n")
    sys.stdout.flush()


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _poll() -> None:
    from sdk.features.documents import read_client_flags

    for _ in read_client_flags(["many"], "production", inline_segments=False):
        pass


if __name__ == "__main__":
    main()
