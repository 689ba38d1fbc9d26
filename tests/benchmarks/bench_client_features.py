"""What SDKs download, beside its floor: an empty authenticated request. bench_hot_path measures polls.

``python -m tests.benchmarks.bench_client_features [FLAGS]`` (default: 1000)
"""

import gzip
import http.client
import sys
import threading
import time
from collections.abc import Callable

from tests.support.live_server import data_directory, median_ms, running

SECONDS = 4.0
CLIENTS = 4


def rate(work: Callable[[], Callable[[], None]]) -> float:
    """Requests a second of CLIENTS threads; ``work`` makes one thread's own request function."""
    done: list[int] = []
    until = time.perf_counter() + SECONDS

    def run() -> None:
        ask, count = work(), 0
        while time.perf_counter() < until:
            ask()
            count += 1
        done.append(count)

    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / SECONDS


def asking(
    port: int, secret: str, path: str, expected: int, **headers: str
) -> Callable[[], Callable[[], None]]:
    def make() -> Callable[[], None]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        sent = {"Authorization": secret, "Unleash-Client-Spec": "5.2.0"} | headers

        def ask() -> None:
            connection.request("GET", path, headers=sent)
            response = connection.getresponse()
            response.read()
            assert response.status == expected, response.status

        return ask

    return make


def etag_of(port: int, secret: str) -> tuple[str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        "GET", "/api/client/features", headers={"Authorization": secret, "Unleash-Client-Spec": "5.2.0"}
    )
    response = connection.getresponse()
    return response.headers["ETag"], response.read()


def main(flags: int) -> None:
    with data_directory():
        from tests.benchmarks.bench_playground import load
        from tests.support.cast import make_token

        load("measured", flags)
        secret = make_token("backend", projects=["measured"], environment="production")
        admin = make_token("admin")
        with running(workers=2) as port:
            start = time.perf_counter()
            _, body = etag_of(port, secret)
            first = (time.perf_counter() - start) * 1000
            zipped = len(gzip.compress(body, 6))
            print(
                f"{flags} flags, {len(body) / 1e6:.2f} MB, gzip {zipped / 1e3:.0f} kB; first answer {first:.0f} ms"
            )
            features = "/api/client/features"
            measured = {
                "empty authenticated request (floor)": asking(
                    port, admin, "/api/admin/metrics/applications?limit=1", 200
                ),
                "200 gzip": asking(port, secret, features, 200, **{"Accept-Encoding": "gzip"}),
                "200": asking(port, secret, features, 200),
            }
            for what, work in measured.items():
                ask = work()
                print(f"{rate(work):8.0f} a second, alone {median_ms(ask, runs=50):6.2f} ms  {what}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
