"""Many relays before one server: all restarted at once, and a change while all listen.

``python -m tests.benchmarks.bench_relays [RELAYS [FLAGS [TOKENS]]]`` (default: 50 1000 10). The server is a program that
only counts; what its requests cost flagadmin, other benchmarks say.
"""

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.bench_relay import make_upstream, memory_mb, secret_of
from tests.support.live_server import wait_until
from tests.support.relay import Relay, relaying
from tests.support.upstream import Upstream, running

WATCH = 10.0  # seconds
LOOK = 0.05


def start_all(stack: ExitStack, upstream: Upstream, folder: Path, relays: int) -> list[Relay]:
    options = ("--poll-seconds", "15", "--report-seconds", "60")
    return [
        stack.enter_context(relaying(upstream.port, folder / str(number), *options))
        for number in range(relays)
    ]


def watch(upstream: Upstream) -> tuple[int, int]:
    """The requests of WATCH seconds, and those of the busiest second."""
    begun, counts = len(upstream.asked), list[int]()
    for _ in range(int(WATCH / LOOK)):
        time.sleep(LOOK)
        counts.append(len(upstream.asked) - begun)
    step = int(1 / LOOK)
    busiest = max(after - before for before, after in zip([0, *counts], [*counts[step - 1 :]], strict=False))
    return counts[-1], busiest


def spread_seconds(upstream: Upstream, relays: list[Relay], secret: str) -> list[float]:
    """For each relay the seconds from a change to when it has it, as far as asking one after the other can tell."""
    flags = [flag | {"name": f"{flag['name']}-changed"} for flag in upstream.features]
    begun = time.perf_counter()
    upstream.change(*flags)
    waiting, took = list(relays), list[float]()
    while waiting:
        for relay in list(waiting):
            names = relay.flags(secret)
            if isinstance(names, list) and names[0].endswith("-changed"):
                took.append(time.perf_counter() - begun)
                waiting.remove(relay)
    return took


def main(relays: int, flags: int, tokens: int) -> None:
    upstream = make_upstream(flags, tokens)
    upstream.has_streams = True
    secrets = [secret_of(number) for number in range(tokens)]
    with tempfile.TemporaryDirectory() as folder, running(upstream):
        with ExitStack() as stack:
            for relay in start_all(stack, upstream, Path(folder), relays):
                for secret in secrets:
                    assert relay.flags(secret) != 503
        before = len(upstream.asked)
        with ExitStack() as stack:
            begun = time.perf_counter()
            started = start_all(stack, upstream, Path(folder), relays)
            total, busiest = watch(upstream)
            print(
                f"{relays} relays restarted in {time.perf_counter() - begun - WATCH:.1f} s, one after the other:"
                f" {len(upstream.asked) - before} requests; in {WATCH:.0f} s after that {total}, at most {busiest} a second"
            )
            wait_until(lambda: all(isinstance(relay.flags(secrets[0]), list) for relay in started))
            took = sorted(spread_seconds(upstream, started, secrets[0]))
            memory = statistics.mean(memory_mb(relay.process.pid) for relay in started)
            print(
                f"a change: {took[len(took) // 2]:.2f} s at half of the relays, {took[-1]:.2f} s at all;"
                f" {memory:.0f} MB each with {flags} flags, {tokens} tokens"
            )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *[50, 1000, 10][len(given) :])
