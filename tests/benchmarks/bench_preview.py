"""Measures previews of large imports: four at once, their memory, and what others wait meanwhile.

    python -m tests.benchmarks.bench_preview [FLAGS]

Four browsers each bring a file of that many flags (50,000 unless said), wait until the preview shows what the import
would do, and look at a second page of it. Meanwhile four clients ask the playground for another project's flags.
"""

import http.client
import os
import re
import statistics
import sys
import threading
import time
from typing import Any

from tests.benchmarks.bench_import import make_body, playground_ms
from tests.support.live_server import PATIENCE, data_directory, descends, running

TOKEN = "c" * 32


class Browser:
    """Somebody who is logged in."""

    def __init__(self, port: int, session: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4 * PATIENCE)
        self.cookies = f"sessionid={session}; csrftoken={TOKEN}"

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> tuple[Any, str]:
        headers = {"Cookie": self.cookies} | ({"Content-Type": kind} if kind else {})
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return response, response.read().decode()

    def preview(self, file: bytes) -> tuple[float, float, float]:
        """Seconds to bring the file, until its preview is there, and for another page of it."""
        began = time.perf_counter()
        fields = {"csrfmiddlewaretoken": TOKEN, "project": "default", "environment": "development"}
        body, kind = multipart(fields, file)
        response, page = self.call("POST", "/import/", body, kind)
        assert response.status == 302, (response.status, page[:2000])
        address, brought = response.headers["Location"], time.perf_counter()
        response, page = self.call("GET", address)
        assert re.search("Import [0-9,]+ flags", page), page[:2000]
        there = time.perf_counter()
        self.call("GET", f"{address}?page=2")
        return brought - began, there - brought, time.perf_counter() - there


def multipart(fields: dict[str, str], file: bytes) -> tuple[bytes, str]:
    """The body of a form with a file, and its content type."""
    line = b"--boundary\r\nContent-Disposition: form-data; name="
    parts = [line + f'"{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    head = line + b'"file"; filename="export.json"\r\nContent-Type: application/json\r\n\r\n'
    return b"".join([*parts, head, file, b"\r\n--boundary--\r\n"]), "multipart/form-data; boundary=boundary"


class Memory(threading.Thread):
    """While entered: the most that the server's processes have held, together and each (in MB, database not counted)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.together, self.each, self._over = 0, 0, threading.Event()

    def __enter__(self) -> "Memory":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.2):
            held = held_by_processes()
            self.together, self.each = max(self.together, sum(held)), max(self.each, *held)


def held_by_processes() -> list[int]:
    parents, held = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/cmdline") as cmdline, open(f"/proc/{pid}/status") as status:
                lines = dict(line.split(":", 1) for line in status if ":" in line)
                parents[pid] = int(lines["PPid"])
                if "postgres" not in cmdline.read() and "VmRSS" in lines:
                    held[pid] = int(lines["VmRSS"].split()[0]) // 1024
        except OSError:
            continue  # gone meanwhile
    main = os.getpid()
    return [mb for pid, mb in held.items() if pid != main and descends(pid, parents, main)] or [0]


def session_of_admin() -> str:
    from django.test import Client

    from groups.permissions import BuiltIn
    from tests.support.cast import make_user

    browser = Client()
    browser.force_login(make_user("bench", root_role=BuiltIn.ADMIN))
    return browser.cookies["sessionid"].value


def p99(times: list[float]) -> str:
    return f"{statistics.quantiles(times, n=100)[-1]:.0f} ms"


def main(flags: int) -> None:
    with data_directory():
        from tests.benchmarks.bench_playground import load
        from tests.support.cast import make_token

        key, session, file = make_token("admin"), session_of_admin(), make_body(flags)
        load("other", 1_000)
        with running(workers=2) as port:
            alone = playground_ms(port, key, until=threading.Timer(5, lambda: None))
            print(
                f"playground of another project alone: p99 {p99(alone)}, median {statistics.median(alone):.0f} ms"
            )
            previews: list[tuple[float, float, float]] = []
            looking = threading.Thread(target=lambda: previews.extend(four_at_once(port, session, file)))
            with Memory() as memory:
                meanwhile = playground_ms(port, key, until=looking)
            for brought, shown, second in previews:
                print(
                    f"file in {brought:5.1f} s | preview there after {shown:5.1f} s | page 2 in {second:5.2f} s"
                )
            print(
                f"playground meanwhile: p99 {p99(meanwhile)}, median {statistics.median(meanwhile):.0f} ms, slowest"
                f" {max(meanwhile):.0f} ms | all processes {memory.together:,} MB, largest {memory.each:,} MB"
            )


def four_at_once(port: int, session: str, file: bytes) -> list[tuple[float, float, float]]:
    seen: list[tuple[float, float, float]] = []
    browsers = [
        threading.Thread(target=lambda: seen.append(Browser(port, session).preview(file))) for _ in range(4)
    ]
    for browser in browsers:
        browser.start()
    for browser in browsers:
        browser.join()
    return seen


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
