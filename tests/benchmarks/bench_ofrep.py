"""OFREP over HTTP beside its floor: an empty authenticated request of the same run.

Every question is about another user. ``python -m tests.benchmarks.bench_ofrep [FLAGS ...]`` (default: 100 1000 20000)
"""

import sys
from itertools import count
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.live_server import Client, data_directory, median_ms, running
from tests.support.ofrep import FLAGS

users = count(42)


def question() -> dict[str, Any]:
    return {
        "context": {
            "targetingKey": str(next(users)),
            "country": "NO",
            "plan": "professional",
            "version": "1.20.0",
        }
    }


def measure(port: int, secret: str, empty: str, project: str, flags: int) -> None:
    client, nothing = Client(port, secret), Client(port, empty)

    def ask(who: Client, path: str = "", **headers: str) -> tuple[int, bytes]:
        return who.call("POST", FLAGS + path, question(), **headers)

    status, answer = ask(client)
    assert status == 200, answer[:500]
    name = f"/{project}-{flags // 2:05}"
    assert ask(client, name)[0] == 200
    floor = median_ms(lambda: ask(nothing), runs=200)
    one = median_ms(lambda: ask(client, name), runs=200)
    every = median_ms(lambda: ask(client), runs=100 if flags <= 1000 else 20)
    print(
        f"{flags:>6} flags: all {every:8.2f} ms ({len(answer) / 1e6:.2f} MB), one {one:.2f} ms; "
        f"floor: empty request {floor:.2f} ms"
    )


def main(counts: list[int]) -> None:
    with data_directory():
        from tests.support.cast import make_token

        for flags in counts:
            load(f"p{flags}", flags)
        secrets = {
            flags: make_token("backend", projects=[f"p{flags}"], environment="production") for flags in counts
        }
        empty = make_token("backend", projects=[], environment="production")
        with running(workers=1) as port:
            for flags in counts:
                measure(port, secrets[flags], empty, f"p{flags}", flags)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1000, 20000])
