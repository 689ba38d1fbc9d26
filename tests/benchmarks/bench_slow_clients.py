"""How long others wait while 200 clients hold connections on which half a request has been sent.

``python -m tests.benchmarks.bench_slow_clients``
"""

import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from tests.benchmarks.bench_playground import load, question
from tests.support.live_server import Client, data_directory, held_sockets, running

HALVES = {
    "bodies": b"POST /api/admin/playground HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{ ",
    "headers": b"GET /healthz HTTP/1.1\r\nHost: loc",
}
SECONDS = 4.0
HELD = 200


def measure(name: str, ask: Callable[[Client], tuple[int, bytes]], port: int, secret: str) -> None:
    """Two callers without a pause."""
    waits: list[float] = []

    def run() -> None:
        client = Client(port, secret, timeout=SECONDS)
        until = time.perf_counter() + SECONDS
        while (start := time.perf_counter()) < until:
            with suppress(TimeoutError):
                assert ask(client)[0] == 200
            waits.append((time.perf_counter() - start) * 1000)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p99 = statistics.quantiles(waits, n=100)[98] if len(waits) > 1 else waits[0]
    print(
        f"  {name:10} p50 {statistics.median(waits):8.2f} ms, p99 {p99:8.2f} ms, {len(waits) / SECONDS:6.0f} requests/s"
    )


def main() -> None:
    with data_directory():
        from tests.support.cast import make_token

        secret = make_token("admin")
        load("p100", 100)
        for half in (None, *HALVES):
            with running(workers=2) as port, ExitStack() as stack:
                print(f"{HELD} held {half}" if half else "nobody else")
                if half:
                    stack.enter_context(held_sockets(port, HELD, HALVES[half]))
                measure("healthz", lambda client: client.call("GET", "/healthz"), port, secret)
                measure(
                    "playground",
                    lambda client: client.call("POST", "/api/admin/playground", question(["p100"])),
                    port,
                    secret,
                )


if __name__ == "__main__":
    main()
