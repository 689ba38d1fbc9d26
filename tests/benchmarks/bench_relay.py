"""A relay in CPU time, beside a bare Granian server of the same run; its start and its memory.

``python -m tests.benchmarks.bench_relay [FLAGS [TOKENS [REQUESTS]]]`` (default: 1000 1000 3000)
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from tests.benchmarks.bench_engine import make_flag
from tests.benchmarks.bench_front import (
    FIELDS,
    Requests,
    answer_of,
    bare_server,
    cpu_ms,
    etag_of,
    get,
    new_contexts,
)
from tests.support.live_server import wait_until
from tests.support.relay import Relay, relaying
from tests.support.upstream import Upstream, make_token, running

FEATURES = "/api/client/features"
SCOPES = 10  # projects that all tokens are of


def secret_of(number: int) -> str:
    return f"p{number % SCOPES}:production.secret-{number:05}"


def make_upstream(flags: int, tokens: int) -> Upstream:
    upstream = Upstream()
    upstream.has_streams = False
    made = (make_flag(number) | {"impressionData": False} for number in range(flags))
    upstream.change(*(flag | {"project": f"p{number % SCOPES}"} for number, flag in enumerate(made)))
    upstream.add(
        *(
            make_token(secret_of(n), "client", f"p{n % SCOPES}", environment="production")
            for n in range(tokens)
        ),
        make_token("*:production.all-projects", "client", "*", environment="production"),
        make_token("*:production.frontend", "frontend", "*", environment="production"),
    )
    return upstream


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


def poll(secret: str, more: str = "") -> bytes:
    head = f"GET {FEATURES} HTTP/1.1\r\nHost: x\r\nAuthorization: {secret}\r\nUnleash-Client-Spec: 5.2.0\r\n"
    return f"{head}{more}\r\n".encode()


def report(secret: str) -> bytes:
    times = '"start":"2026-11-25T10:00:00Z","stop":"2026-11-25T10:01:00Z"'
    toggles = ",".join(f'"bench-flag-{n:05}":{{"yes":3,"no":1,"variants":{{"blue":2}}}}' for n in range(5))
    body = f'{{"appName":"web","instanceId":"i","bucket":{{{times},"toggles":{{{toggles}}}}}}}'
    head = f"POST /api/client/metrics HTTP/1.1\r\nHost: x\r\nAuthorization: {secret}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def show(relay: Relay, what: str, requests: Requests, status: int, number: int, goal: str = "") -> None:
    took = cpu_ms(relay.port, relay.process.pid, requests, status, number)
    request = next(requests)
    body = answer_of(relay.port, request)[2]
    with bare_server(body) as bare:
        method, _, rest = request.split(b" ", 2)
        path = b"/304" if status == 304 else b"/full"
        expected = 304 if status == 304 else 200
        floor = cpu_ms(*bare, cycle([b" ".join((method, path, rest))]), expected, number)
    print(
        f"{took:6.3f} ms ({1000 / took:6.0f} a second): {what}{goal}; bare server {floor:.3f} ms", flush=True
    )


@contextmanager
def started(upstream: Upstream, data: Path) -> Iterator[tuple[Relay, float]]:
    """A relay, and the seconds until it served."""
    begun = time.perf_counter()
    with relaying(upstream.port, data, "--poll-seconds", "15", "--report-seconds", "1") as relay:
        yield relay, time.perf_counter() - begun


def main(flags: int, tokens: int, number: int) -> None:
    upstream, whole, web = make_upstream(flags, tokens), "*:production.all-projects", "*:production.frontend"
    with running(upstream), tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with started(upstream, data) as (relay, _):
            for secret in [*(secret_of(n) for n in range(tokens)), whole]:
                assert relay.flags(secret) != 503
            relay.get("/api/frontend", web)
        with started(upstream, data) as (relay, seconds):
            wait_until(lambda: relay.get("/api/frontend", web)[0] == 200)
            print(
                f"start {seconds:.2f} s, goal 1 s; {memory_mb(relay.process.pid):.0f} MB, goal 120 MB,"
                f" with {flags} flags, {tokens} tokens"
            )
            etag = etag_of(relay.port, poll(whole))
            show(relay, "304", cycle([poll(whole, f"If-None-Match: {etag}\r\n")]), 304, number)
            show(relay, f"200, {flags} flags", cycle([poll(whole)]), 200, number // 3)
            new = new_contexts(lambda context: get(web, context))
            show(relay, f"frontend, {flags} flags, new contexts", new, 200, number // 3)
            same = [get(web, FIELDS | {"userId": f"user-{user}"}) for user in range(200)]
            show(relay, "the same contexts again", cycle(same), 200, number)
            asked, begun = len(upstream.reports), time.perf_counter()
            show(
                relay, "a usage report taken in", cycle([report(secret_of(0))]), 202, number, "; goal 0.2 ms"
            )
            rate = (len(upstream.reports) - asked) / (time.perf_counter() - begun)
            print(f"{rate:.1f} reports a second at the upstream; {memory_mb(relay.process.pid):.0f} MB")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *[1000, 1000, 3000][len(given) :])
