"""Streams: from a committed change to its event at 1,000 SDKs, and what 5,000 that hear nothing cost.

``python -m tests.benchmarks.bench_streaming [CONNECTED [IDLE]]`` (default: 1000 5000). The clients share the machine's cores
with the server and its database. The floor of memory and of the playground is the same server without streams.
"""

import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_playground import load, question
from tests.support.live_server import Client, data_directory, descendants, median_ms, started

WORKERS = 2
FLAGS = 100
CHANGES = 30
AT_ONCE = 100  # connections being opened
IDLE_SECONDS = 30  # longer than between two comments that keep a stream alive
TICK = os.sysconf("SC_CLK_TCK")


class Listener(asyncio.Protocol):
    """An SDK that only notes when it is told of something."""

    def __init__(self, streams: "Streams") -> None:
        self.streams = streams
        self.connected = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.streams.request)

    def data_received(self, data: bytes) -> None:
        if not self.connected.done() and b"event: unleash-connected" in data:
            self.connected.set_result(None)
        elif b"event: unleash-updated" in data:
            self.streams.told.append(time.monotonic())

    def connection_lost(self, error: Exception | None) -> None:
        self.streams.lost += 1
        if not self.connected.done():
            self.connected.set_exception(ConnectionError("refused"))


class Streams:
    """Clients in a loop of their own thread."""

    def __init__(self, port: int, secret: str) -> None:
        self.port = port
        self.request = f"GET /api/client/streaming HTTP/1.1\r\nHost: localhost\r\nAuthorization: {secret}\r\n\r\n".encode()
        self.open: list[Listener] = []
        self.told: list[float] = []
        self.lost = 0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def grow(self, count: int) -> None:
        while missing := count - len(self.open):
            opened = [self.connect() for _ in range(min(AT_ONCE, missing))]
            self.open += await asyncio.gather(*opened)

    async def connect(self) -> Listener:
        _, listener = await self.loop.create_connection(lambda: Listener(self), "127.0.0.1", self.port)
        await listener.connected
        return listener


def workers(group: int) -> list[int]:
    return list(descendants(b"flagadmin-work", group))


def megabytes(pids: list[int]) -> float:
    """Memory of processes; what they share counts once."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def cpu_seconds(pids: list[int]) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICK


def delays(streams: Streams) -> list[float]:
    """Seconds from each of CHANGES commits until each client has been told."""
    from projects.models import FlagEnvironment

    found: list[float] = []
    rows = FlagEnvironment.objects.filter(environment="production").order_by("flag__name")[:1].values("pk")
    for number in range(CHANGES):
        streams.told.clear()
        FlagEnvironment.objects.filter(pk__in=rows).update(enabled=number % 2 == 1)
        committed = time.monotonic()
        while len(streams.told) < len(streams.open):
            assert time.monotonic() - committed < 60, (
                f"only {len(streams.told)} of {len(streams.open)} were told"
            )
            time.sleep(0.01)
        found += [moment - committed for moment in streams.told]
        time.sleep(0.3)
    return found


def playground_ms(port: int, secret: str) -> float:
    with closing(Client(port, secret)) as client:

        def ask() -> None:
            status, _ = client.call("POST", "/api/admin/playground", question(["big"]))
            assert status == 200

        return median_ms(ask, runs=200, warm_up=20)


def measure(connected: int, idle: int) -> None:
    from tests.support.cast import make_token

    load("big", FLAGS)
    admin, backend = make_token("admin"), make_token("backend", environment="production")
    with started(WORKERS, FLAGADMIN_STREAMS=str(max(connected, idle))) as (port, group):
        streams = Streams(port, backend)
        streams.run(streams.grow(10))
        floor, alone = playground_ms(port, admin), megabytes(workers(group))
        begin = time.monotonic()
        streams.run(streams.grow(connected))
        print(f"{connected:,} streams of {FLAGS} flags opened in {time.monotonic() - begin:.1f} s")
        cuts = statistics.quantiles(delays(streams), n=100)
        print(
            f"change committed to event: median {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms (at most 1,000)"
        )
        streams.run(streams.grow(idle))
        held = megabytes(workers(group))
        print(
            f"{idle:,} idle streams: workers {held:.0f} MB (at most 400), {alone:.0f} MB without:"
            f" {(held - alone) * 1000 / idle:.0f} kB a stream"
        )
        begin, used = time.monotonic(), cpu_seconds(workers(group))
        time.sleep(IDLE_SECONDS)
        share = (cpu_seconds(workers(group)) - used) / (time.monotonic() - begin)
        print(f"CPU of the workers meanwhile: {share:.1%} of a core (at most 5 %)")
        among = playground_ms(port, admin)
        print(
            f"playground: median {among:.2f} ms, {floor:.2f} ms without: {among / floor - 1:+.0%} (at most +10 %)"
        )
        assert streams.lost == 0, f"{streams.lost} streams were lost"


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:]]
    with data_directory():
        measure(*(counts + [1_000, 5_000][len(counts) :]))


if __name__ == "__main__":
    main()
