"""The playground over HTTP beside its floors: serializing the same answer, and an empty authenticated request.

Every question is about another user, so that nothing of the answer before can be of use.

``python -m tests.benchmarks.bench_playground [FLAGS ...]`` (default: 100 1000 5000 50000)
"""

import statistics
import sys
import threading
import time
from itertools import count
from typing import Any

import orjson

from tests.support.live_server import Client, data_directory, median_ms, running


def load(project: str, count: int) -> None:
    """Flags of the shape that DESIGN.md measures: two strategies, three constraints, two variants."""
    from django.utils import timezone

    from projects.models import Flag, FlagEnvironment, Strategy
    from tests.support.cast import make_project

    make_project(project)
    now = timezone.now()
    flags = Flag.objects.bulk_create(
        [Flag(name=f"{project}-{n:05}", project_id=project, created_at=now) for n in range(count)],
        batch_size=5000,
    )
    FlagEnvironment.objects.bulk_create(
        [FlagEnvironment(flag=flag, environment_id="production", enabled=True) for flag in flags],
        batch_size=5000,
    )
    strategies = [strategy for flag in flags for strategy in strategies_of(flag)]
    Strategy.objects.bulk_create(strategies, batch_size=5000)


def strategies_of(flag):
    from projects.models import Strategy

    n = int(flag.name[-5:])
    place = {"flag": flag, "environment_id": "production"}
    constraints = [
        {"contextName": "country", "operator": "IN", "values": ["NO", "SE", f"X{n}"], "inverted": False},
        {"contextName": "plan", "operator": "STR_STARTS_WITH", "values": ["pro"], "caseInsensitive": True},
        {"contextName": "version", "operator": "SEMVER_GT", "value": f"1.{n % 40}.0", "values": []},
    ]
    variants = [
        {
            "name": name,
            "weight": 500,
            "weightType": "variable",
            "stickiness": "default",
            "payload": {"type": "string", "value": f"payload-{name}-{n}"},
        }
        for name in ("blue", "green")
    ]
    rollout = {"rollout": str(n % 101), "stickiness": "default", "groupId": flag.name}
    return [
        Strategy(
            **place, name="flexibleRollout", parameters=rollout, constraints=constraints, variants=variants
        ),
        Strategy(**place, name="flexibleRollout", sort_order=1, parameters=rollout | {"groupId": "second"}),
    ]


users = count(42)


def question(projects: list[str]) -> dict[str, Any]:
    properties = {"country": "NO", "plan": "professional", "version": "1.20.0"}
    context = {"userId": str(next(users)), "properties": properties}
    return {"environment": "production", "projects": projects, "context": context}


def measure(port: int, secret: str, project: str, flags: int) -> None:
    client = Client(port, secret)

    def ask(*projects: str) -> tuple[int, bytes]:
        return client.call("POST", "/api/admin/playground", question(list(projects)))

    start = time.perf_counter()
    status, answer = ask(project)
    first = (time.perf_counter() - start) * 1000
    assert status == 200, answer[:500]
    runs = 100 if flags <= 1000 else 30 if flags <= 5000 else 7
    decoded = orjson.loads(answer)
    assert len(decoded["features"]) == flags
    whole = median_ms(lambda: ask(project), runs=runs)
    empty = median_ms(ask, runs=30)
    floor = median_ms(lambda: orjson.dumps(decoded), runs=runs)
    changed = statistics.median(after_a_switch(client, project, on=turn % 2 == 0) for turn in range(5))
    print(
        f"{flags:>6} flags: {whole:8.2f} ms ({whole / flags * 1000:.2f} us a flag, {len(answer) / 1e6:.2f} MB); "
        f"first of a worker {first:.0f} ms, first after a switch {changed:.0f} ms; floors: serializing {floor:.2f} ms, empty request {empty:.2f} ms"
    )


def after_a_switch(client: Client, project: str, *, on: bool) -> float:
    """What the next request takes once a flag was switched, in ms."""
    from projects.models import FlagEnvironment

    FlagEnvironment.objects.filter(flag__name=f"{project}-00000").update(enabled=on)
    start = time.perf_counter()
    assert client.call("POST", "/api/admin/playground", question([project]))[0] == 200
    return (time.perf_counter() - start) * 1000


def throughput(port: int, secret: str, project: str, seconds: float = 5, clients: int = 4) -> None:
    done = []

    def run() -> None:
        client = Client(port, secret)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            assert client.call("POST", "/api/admin/playground", question([project]))[0] == 200
            done.append(1)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{clients} clients, 2 workers: {len(done) / seconds:.0f} requests a second")


def main(counts: list[int]) -> None:
    with data_directory():
        from tests.support.cast import make_token

        secret = make_token("admin")
        for flags in counts:
            load(f"p{flags}", flags)
        with running(workers=1) as port:
            for flags in counts:
                measure(port, secret, f"p{flags}", flags)
        if 1000 in counts:
            with running(workers=2) as port:
                throughput(port, secret, "p1000")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1000, 5000, 50000])
