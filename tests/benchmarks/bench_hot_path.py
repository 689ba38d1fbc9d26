"""Polls that the event loop answers, beside a bare Granian server and beside Django, in the same run.

``python -m tests.benchmarks.bench_hot_path [FLAGS [SECONDS]]`` (default: 1000 4). Needs wrk. Read the ratios: the load generator
shares the machine's cores with the server.
"""

import http.client
import re
import shutil
import subprocess
import sys

from tests.benchmarks.bench_front import bare_server
from tests.support.live_server import data_directory, running

WORKERS = 2
CONNECTIONS = 32
FEATURES = "/api/client/features"
# Django answers any request with a cookie.
BY_DJANGO = {"Cookie": "none=1"}


def etag_of(port: int, secret: str) -> tuple[str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        "GET", "/api/client/features", headers={"Authorization": secret, "Unleash-Client-Spec": "5.2.0"}
    )
    response = connection.getresponse()
    return response.headers["ETag"], response.read()


def rate(port: int, path: str, seconds: int, headers: dict[str, str]) -> float:
    """Requests a second, all answered."""
    sent = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    command = [
        "wrk",
        f"-t{WORKERS}",
        f"-c{CONNECTIONS}",
        f"-d{seconds}",
        *sent,
        f"http://127.0.0.1:{port}{path}",
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    found = re.search(r"Requests/sec:\s+([\d.]+)", said)
    assert found, said
    return float(found[1])


def main(flags: int, seconds: int) -> None:
    if not shutil.which("wrk"):
        print("wrk is not installed")
        return
    with data_directory():
        from tests.benchmarks.bench_playground import load
        from tests.support.cast import make_token

        load("measured", flags)
        secret = make_token("backend", projects=["measured"], environment="production")
        with running(WORKERS) as port:
            etag, body = etag_of(port, secret)
            known = {"Authorization": secret, "Unleash-Client-Spec": "5.2.0"}
            print(f"{flags} flags, {len(body) / 1e6:.2f} MB; {CONNECTIONS} connections, {WORKERS} workers")
            with bare_server(body, WORKERS) as (bare, _):
                for what, path, floor, headers in (
                    ("304", FEATURES, "/304", known | {"If-None-Match": etag}),
                    ("200", FEATURES, "/full", known),
                    ("200 gzip", FEATURES, "/304", known | {"Accept-Encoding": "gzip"}),
                    ("/healthz", "/healthz", "/304", {}),
                ):
                    by_django = rate(port, path, seconds, headers | BY_DJANGO)
                    ours = rate(port, path, seconds, headers)
                    least = rate(bare, floor, seconds, {})
                    print(
                        f"{ours:8.0f} a second: {what}; {ours / least:.2f} of {least:.0f}, the bare server's {floor}; "
                        f"{ours / by_django:.1f} times Django's {by_django:.0f}"
                    )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *[1000, 4][len(given) :])
