"""POST /api/admin/playground/compare over HTTP: one flag for 10,000 explicit contexts.

``python -m tests.benchmarks.bench_compare_contexts``. The floors: parsing the body, and one context. The target is
150 ms on an idle machine.
"""

import sys

import orjson

from tests.benchmarks.bench_playground import load
from tests.support.live_server import Client, data_directory, median_ms, running

CONTEXTS, RUNS = 10_000, 15
COUNTRIES = ("NO", "SE", "DE")


def question(contexts: int) -> dict[str, object]:
    draft = {
        "flag": "shop-00000",
        "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": "75"}}],
    }
    explicit = [
        {"userId": f"user-{number}", "properties": {"country": COUNTRIES[number % 3], "plan": "pro"}}
        for number in range(contexts)
    ]
    return {
        "from": {"environment": "production"},
        "to": {"environment": "production", "draft": draft},
        "flag": "shop-00000",
        "contexts": {"explicit": explicit},
    }


def main() -> None:
    with data_directory():
        from tests.support.cast import make_token

        load("shop", 100)
        secret = make_token("admin")
        many, one = orjson.dumps(question(CONTEXTS)), orjson.dumps(question(1))
        with running(workers=1) as port:
            client = Client(port, secret)

            def ask(body: bytes) -> None:
                status, answer = client.call("POST", "/api/admin/playground/compare", body)
                assert status == 200, answer[:500]

            ask(many)
            sys.stdout.write(
                f"{CONTEXTS:,} contexts: {median_ms(lambda: ask(many), runs=RUNS):.0f} ms; floors: one context "
                f"{median_ms(lambda: ask(one), runs=RUNS):.0f} ms, parsing "
                f"{median_ms(lambda: orjson.loads(many), runs=RUNS):.0f} ms\n"
            )


if __name__ == "__main__":
    main()
