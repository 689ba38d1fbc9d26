"""What contexts get in the event loop, in CPU time of the server, beside a bare Granian server and Django in the same run.

``python -m tests.benchmarks.bench_front [FLAGS [REQUESTS]]`` (default: 350 3000). CPU time rather than a rate, because
the client shares the machine's cores with the server; a core answers the reciprocal. Goals are in times of the bare
server's answer. Rounds are those of the calibration loop.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.cpu import Calibration
from tests.support.live_server import PATIENCE, data_directory, reserved_port, started, wait_until

CONNECTIONS = 16
TICKS = os.sysconf("SC_CLK_TCK")
BARE = """
BODY = open("body", "rb").read()

async def application(scope, protocol):
    if scope.method == "POST":
        await protocol()
    if scope.path == "/full":
        protocol.response_bytes(200, [("content-type", "application/json")], BODY)
    else:
        protocol.response_empty(304, [("etag", '"1"')])
"""
FIELDS = {"country": "NO", "plan": "professional", "version": "1.20.0"}
users = count(1_000)
OFREP = "/ofrep/v1/evaluate/flags"
BY_DJANGO = "Cookie: none=1\r\n"

Requests = Iterator[bytes]


class Connection:
    """One connection that sends and receives raw HTTP."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def close(self) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> tuple[int, dict[str, str], bytes]:
        while b"\r\n\r\n" not in self._received:
            self._more()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = 0 if first.split()[1] == "304" else int(headers.get("content-length", "0"))
        while len(self._received) < length:
            self._more()
        body, self._received = self._received[:length], self._received[length:]
        return int(first.split()[1]), headers, body

    def _more(self) -> None:
        chunk = self._socket.recv(262_144)
        assert chunk, "the server closed the connection"
        self._received += chunk


def cpu_seconds(group: int) -> float:
    """Of all processes of a group that run."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has exited
            if int(fields[2]) == group:
                total += int(fields[11]) + int(fields[12])
    return total / TICKS


def is_idle(group: int) -> bool:
    """Whether a server that has started has done what it does then. Waits for a second."""
    begun = cpu_seconds(group)
    time.sleep(1)
    return cpu_seconds(group) - begun < 0.1


def cpu_ms(port: int, group: int, requests: Requests, expected: int, number: int) -> float:
    """The server's CPU time for one request, all of which get the expected status."""
    with ExitStack() as stack:
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        for connection in connections:
            stack.callback(connection.close)
        for rounds in (20, number // CONNECTIONS):  # the first to warm up
            begun = cpu_seconds(group)
            for _ in range(rounds):
                for connection in connections:
                    connection.send(next(requests))
                for connection in connections:
                    status, _, body = connection.receive()
                    assert status == expected, (status, body[:500])
        return (cpu_seconds(group) - begun) * 1000 / (number // CONNECTIONS * CONNECTIONS)


def get(secret: str, query: dict[str, str], more: str = "") -> bytes:
    path = f"/api/frontend?{urlencode(query)}"
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {secret}\r\n{more}\r\n".encode()


def post(secret: str, path: str, context: dict[str, Any], more: str = "") -> bytes:
    body = json.dumps({"context": context})
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {secret}\r\nContent-Type: application/json\r\n"
    return f"{head}{more}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def answer_of(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    connection = Connection(port)
    try:
        connection.send(request)
        return connection.receive()
    finally:
        connection.close()


def etag_of(port: int, request: bytes) -> str:
    return answer_of(port, request)[1]["etag"]


def new_contexts(make: Callable[[dict[str, str]], bytes]) -> Requests:
    return (make(FIELDS | {"userId": f"user-{next(users)}"}) for _ in count())


@contextmanager
def bare_server(body: bytes, workers: int = 1) -> Iterator[tuple[int, int]]:
    """The same server and interface, with an application that does nothing. Its port and process group."""
    with tempfile.TemporaryDirectory() as folder, reserved_port() as port:
        (Path(folder) / "bare.py").write_text(BARE)
        (Path(folder) / "body").write_bytes(body)
        command = [sys.executable, "-m", "granian", "--interface", "rsgi", "--http", "1", "--no-ws"]
        command += ["--port", str(port), "--log-level", "error", "bare:application"]
        command += ["--workers", str(workers)]
        with subprocess.Popen(command, cwd=folder, process_group=0) as server:
            try:
                wait_until(lambda: answers(port))
                yield port, server.pid
            finally:
                server.terminate()


def answers(port: int) -> bool:
    try:
        return answer_of(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[0] > 0
    except OSError:
        return False


class Bench:
    """Measures one server beside the bare one, and prints a line for each kind of request."""

    def __init__(self, server: tuple[int, int], number: int) -> None:
        self.port, self.group = server
        self._number = number
        self._loop = Calibration().seconds_of_a_round() * 1000

    def show(
        self, what: str, goal: float, requests: Requests, status: int = 200, by_django: Requests | None = None
    ) -> None:
        took = cpu_ms(self.port, self.group, requests, status, self._number)
        answer = next(requests)
        body = answer_of(self.port, answer)[2]
        with bare_server(body) as bare:
            path = b"/full" if status == 200 else b"/304"
            method, _, rest = answer.split(b" ", 2)
            asked = cycle([method + b" " + path + b" " + rest])
            floor = cpu_ms(*bare, asked, status, self._number)
        line = f"{took / self._loop:6.4f} rounds, {took:.3f} ms, {took / floor:.1f} times the bare server's (goal {goal:g}): {what}"
        if by_django is not None:
            line += f"; Django {cpu_ms(self.port, self.group, by_django, status, self._number // 10):.2f} ms"
        print(line, flush=True)


def main(flags: int, number: int) -> None:
    with data_directory():
        from tests.benchmarks.bench_playground import load
        from tests.support.cast import make_token

        load("front", flags)
        load("hundred", 100)
        web = make_token("frontend", projects=["front"], environment="production")
        hundred = make_token("backend", projects=["hundred"], environment="production")
        browser = make_token("frontend", projects=["hundred"], environment="production")
        with started(1) as server:
            wait_until(lambda: is_idle(server[1]))
            bench = Bench(server, number)
            show_frontend(bench, web, flags)
            for secret, who in ((hundred, "backend"), (browser, "frontend")):
                show_openfeature(bench, secret, who)


def show_frontend(bench: Bench, web: str, flags: int) -> None:
    new = new_contexts(lambda context: get(web, context))
    by_django = new_contexts(lambda context: get(web, context, BY_DJANGO))
    bench.show(f"frontend, {flags} flags, new contexts", 13, new, by_django=by_django)
    same = [get(web, FIELDS | {"userId": f"user-{number}"}) for number in range(500)]
    known = [
        get(
            web,
            FIELDS | {"userId": f"user-{number}"},
            f"If-None-Match: {etag_of(bench.port, request)}\r\n",
        )
        for number, request in enumerate(same)
    ]
    bench.show("the same contexts again", 1.8, cycle(same))
    bench.show("the same contexts again, with ETag", 1.2, cycle(known), 304)
    bodies = new_contexts(
        lambda context: post(web, "/api/frontend", {"userId": context["userId"], "properties": FIELDS})
    )
    bench.show("new contexts in bodies", 13, bodies)


def show_openfeature(bench: Bench, secret: str, who: str) -> None:
    def ask(path: str, more: str = "") -> Requests:
        return new_contexts(
            lambda context: post(secret, path, context | {"targetingKey": context["userId"]}, more)
        )

    bench.show(f"OFREP, 100 flags, {who} token", 6, ask(OFREP), by_django=ask(OFREP, BY_DJANGO))
    single = f"{OFREP}/hundred-00050"
    bench.show(f"OFREP, one flag, {who} token", 1.6, ask(single), by_django=ask(single, BY_DJANGO))


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *[350, 3000][len(given) :])
