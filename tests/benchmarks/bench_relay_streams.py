"""A change at the upstream until its event has reached every client behind two relays, and what idle streams cost.

``python -m tests.benchmarks.bench_relay_streams [CLIENTS [FLAGS]]`` (default: 1000 100). The clients and the upstream share
the machine's cores with the relays.
"""

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.bench_relay import make_upstream, memory_mb
from tests.benchmarks.bench_streaming import Streams
from tests.support.live_server import wait_until
from tests.support.relay import relaying
from tests.support.upstream import Upstream, running

CHANGES = 20
GOAL = 300  # ms
KILOBYTES = 60  # of a stream: 600 MB for 10,000
WHOLE = "*:production.all-projects"


def delays(upstream: Upstream, clients: list[Streams]) -> list[float]:
    """Seconds from each change until each client has been told. A change touches one flag."""
    took = list[float]()
    for number in range(CHANGES):
        for streams in clients:
            streams.told.clear()
        first, *others = upstream.features
        begun = time.monotonic()
        upstream.change(first | {"stale": number % 2 == 0}, *others)
        wait_until(lambda: all(len(streams.told) >= len(streams.open) for streams in clients))
        took += [moment - begun for streams in clients for moment in streams.told]
        time.sleep(0.3)
    return took


def main(count: int, flags: int) -> None:
    upstream = make_upstream(flags, 1)
    upstream.has_streams = True
    with tempfile.TemporaryDirectory() as folder, running(upstream), ExitStack() as stack:
        options = ("--poll-seconds", "15", "--token", WHOLE)
        relays = [
            stack.enter_context(relaying(upstream.port, Path(folder) / str(number), *options))
            for number in range(2)
        ]
        clients = [Streams(relay.port, WHOLE) for relay in relays]
        for relay, streams in zip(relays, clients, strict=True):
            wait_until(lambda relay=relay: isinstance(relay.flags(WHOLE), list))
            before = memory_mb(relay.process.pid)
            streams.run(streams.grow(count // 2))
            after = memory_mb(relay.process.pid)
            each = (after - before) * 1000 / (count // 2)
            print(
                f"{count // 2} streams: {before:.0f} MB before, {after:.0f} MB with them:"
                f" {each:.0f} kB each, goal {KILOBYTES} kB"
            )
        time.sleep(2)  # until both relays listen to the upstream
        cuts = statistics.quantiles(delays(upstream, clients), n=100)
        print(
            f"change to event at {count} clients of two relays: median {cuts[49] * 1000:.0f} ms,"
            f" p99 {cuts[98] * 1000:.0f} ms; goal {GOAL} ms"
        )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *[1000, 100][len(given) :])
