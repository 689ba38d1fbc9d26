"""Measures a promotion beside an import of the same flags, and the page that compares two environments.

    python -m tests.benchmarks.bench_promotion [FLAGS]

All flags are in development with a strategy each; production has none of them. Over HTTP, against a server of its own
with one worker. The import into production brings what the promotion copies.
"""

import statistics
import sys
import time
from typing import Any

import orjson

from tests.benchmarks.bench_import import make_body, post
from tests.benchmarks.bench_preview import Browser, session_of_admin
from tests.support.live_server import data_directory, running

PROMOTE = "/api/admin/projects/default/environments/promote"
IMPORT = "/api/admin/features-batch/"
ROUNDS = 7


def page_ms(browser: Browser, path: str) -> float:
    """The median of what the server takes, after a first visit."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        response, page = browser.call("GET", path)
        times.append((time.perf_counter() - began) * 1000)
        assert response.status == 200, page[:2000]
    return statistics.median(times[1:])


def promotion(flags: int, **more: Any) -> bytes:
    names = [f"bench-{index:06d}" for index in range(flags)]
    return orjson.dumps({"from": "development", "to": "production", "features": names, **more})


def main(flags: int) -> None:
    with data_directory():
        from tests.support.cast import make_token

        key, session = make_token("admin"), session_of_admin()
        with running(workers=1) as port:
            body = make_body(flags)
            into_production = body.replace(b'"development"', b'"production"')
            post(port, IMPORT + "import", body, key)
            browser = Browser(port, session)
            page = page_ms(browser, "/projects/default/environments/")
            same = page_ms(browser, "/projects/default/environments/?show=same")
            validated = post(port, IMPORT + "validate", into_production, key)
            planned = post(port, PROMOTE, promotion(flags, planOnly=True), key)
            copied = ["strategies", "variants", "enabled"]
            promoted = post(port, PROMOTE, promotion(flags, copy=copied), key)
            again = post(port, IMPORT + "import", into_production, key)
            print(
                f"{flags:,} flags | comparison, a page {page:4.0f} ms, of those that are the same {same:4.0f} ms"
                f" | promotion: plan {planned:5.2f} s, promoted {promoted:5.2f} s"
                f" | import of the same: validate {validated:5.2f} s, once it is there {again:5.2f} s"
            )
            after = page_ms(browser, "/projects/default/environments/?show=same")
            print(f"comparison once both are the same: {after:4.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
