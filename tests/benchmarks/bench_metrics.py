"""Registrations and metrics posted at once, beside the floor: a commit of one row for each post.

Posts come as fast as they are answered, and at the rate that is asked of the product; each time the admin API is
asked beside them, by a process of its own. Every post that was answered 202 is looked for afterwards, also when the
whole server is killed in the middle.

``python -m tests.benchmarks.bench_metrics [SECONDS]`` (default: 8)
"""

import http.client
import json
import multiprocessing
import os
import random
import signal
import statistics
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from typing import Any

from tests.support.live_server import Client, data_directory, descendants, median_ms, running, started

CLIENTS = 48
RATE = 400  # posts a second
APPS, FLAGS, TOGGLES = 200, 100, 10


class Poster:
    """One thread's posts, every other one a registration; remembers which were answered."""

    def __init__(self, port: int, secret: str, number: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {"Authorization": secret, "Content-Type": "application/json"}
        self.number = number
        self.random = random.Random(number)
        self.instances: list[tuple[str, str]] = []
        self.counted = 0
        self.times: list[float] = []

    def run(self, until: float, every: float = 0) -> None:
        """Posts until then, one every so many seconds or, for 0, as soon as the one before is answered."""
        turn = 0
        due = time.perf_counter() + every * self.number / CLIENTS
        while time.perf_counter() < until:
            time.sleep(max(due - time.perf_counter(), 0))
            due += every
            start = time.perf_counter()
            try:
                self.post(turn)
            except (OSError, http.client.HTTPException):
                return  # the server was killed: this post was not answered
            self.times.append(time.perf_counter() - start)
            turn += 1

    def post(self, turn: int) -> None:
        app, instance = f"app-{self.random.randrange(APPS)}", f"i-{self.number}-{turn}"
        if turn % 2 == 0:
            self.send("register", registration(app, instance))
            self.instances.append((app, instance))
        else:
            self.send("metrics", metrics(app, instance, self.random))
            self.counted += TOGGLES

    def send(self, path: str, body: dict[str, Any]) -> None:
        self.connection.request("POST", f"/api/client/{path}", json.dumps(body), self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        assert response.status == 202, answer


def registration(app: str, instance: str) -> dict[str, Any]:
    return {
        "appName": app,
        "instanceId": instance,
        "sdkVersion": "unleash-node-sdk:6.12.1",
        "strategies": ["default", "flexibleRollout"],
        "started": datetime.now(UTC).isoformat(),
        "interval": 60_000,
    }


def metrics(app: str, instance: str, draw: random.Random) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    toggles = {f"flag-{n}": {"yes": 1, "no": 0} for n in draw.sample(range(FLAGS), TOGGLES)}
    return {"appName": app, "instanceId": instance, "bucket": {"start": now, "stop": now, "toggles": toggles}}


def burst(port: int, secret: str, seconds: float, rate: float = 0) -> list[Poster]:
    posters = [Poster(port, secret, number) for number in range(CLIENTS)]
    until = time.perf_counter() + seconds
    every = CLIENTS / rate if rate else 0
    threads = [threading.Thread(target=poster.run, args=(until, every)) for poster in posters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return posters


def check_nothing_is_lost(posters: list[Poster]) -> None:
    from django.db.models import Sum

    from projects.models import ApplicationInstance, UsageHour

    kept = set(ApplicationInstance.objects.values_list("application__name", "instance_id"))
    answered = {instance for poster in posters for instance in poster.instances}
    counted = sum(poster.counted for poster in posters)
    total = UsageHour.objects.aggregate(Sum("yes"))["yes__sum"] or 0
    assert answered <= kept, f"{len(answered - kept)} registrations are lost"
    assert total >= counted, f"{counted - total} counts are lost"
    print(f"  none lost: {len(answered)} registrations, {counted} counts")


def forget_all() -> None:
    from django.db import connection

    names = "application, applicationinstance, flagusage, usagehour, projectapplication, flaglastseen"
    tables = ", ".join(f"projects_{name}" for name in names.split(", "))
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}")


def floor() -> float:
    """Commits of one row a second, one after the other."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_floor (n int)")
        took = median_ms(lambda: cursor.execute("INSERT INTO bench_floor VALUES (1)"), runs=50)
        cursor.execute("DROP TABLE bench_floor")
    return 1000 / took


def ask(port: int, admin: str, seconds: float) -> list[float]:
    """What requests to the admin API took, in ms: twenty a second."""
    client = Client(port, admin)
    times = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        assert client.call("GET", "/api/admin/projects")[0] == 200
        times.append((time.perf_counter() - start) * 1000)
        time.sleep(0.05)
    return times


def sustained(secret: str, admin: str, seconds: float, rate: float = 0) -> None:
    with (
        running(workers=2) as port,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as elsewhere,
    ):
        quiet = elsewhere.submit(ask, port, admin, seconds / 2).result()
        asking = elsewhere.submit(ask, port, admin, seconds)
        posters = burst(port, secret, seconds, rate)
        busy = asking.result()
    times = sorted(time_ for poster in posters for time_ in poster.times)
    print(
        f"{len(times) / seconds:.0f} posts a second ({'paced' if rate else 'as fast as they are answered'}); "
        f"median {statistics.median(times) * 1000:.0f} ms, 99 % in {times[int(len(times) * 0.99)] * 1000:.0f} ms; "
        f"admin API median: {statistics.median(quiet):.1f} ms alone, {statistics.median(busy):.1f} ms meanwhile"
    )
    check_nothing_is_lost(posters)


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def killed(secret: str, seconds: float) -> None:
    """The serving processes go by SIGKILL in the middle of a burst."""
    with started(workers=2) as (port, server):
        victims = [server, *descendants(b"python", server)]
        timer = threading.Timer(seconds / 2, kill, [victims])
        timer.start()
        posters = burst(port, secret, seconds)
        print(f"{len(victims)} processes killed after {sum(len(p.times) for p in posters)} posts")
        check_nothing_is_lost(posters)


def main(seconds: float) -> None:
    with data_directory():
        from django.utils import timezone

        from projects.models import Flag
        from tests.support.cast import make_token

        now = timezone.now()
        Flag.objects.bulk_create(
            Flag(name=f"flag-{n}", project_id="default", created_at=now) for n in range(FLAGS)
        )
        secret = make_token("backend", environment="production")
        print(f"floor: {floor():.0f} commits of one row a second, one connection")
        admin = make_token("admin")
        for rate in (RATE, 0):
            sustained(secret, admin, seconds, rate)
            forget_all()
        killed(secret, seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 8)
