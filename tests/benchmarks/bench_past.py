"""The flags at a moment 10,000 events ago, beside reading these events from the database and nothing else.

``python -m tests.benchmarks.bench_past [FLAGS] [EVENTS]`` (default: 5000 10000). 100,000 events are older than the moment,
and as many of another project are younger.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.live_server import data_directory

OTHERS = """
INSERT INTO audit_auditevent (type, created_at, actor_name, project, environment, feature, before, after, request_id)
SELECT 'feature-strategy-update', {when}, 'ada', %s, 'production', 'of-another-' || n, '{{}}', '{{}}', ''
  FROM generate_series(1, 100000) AS n
"""


def record_changes(count: int) -> None:
    """Events that change the rollout of one flag after the other."""
    from django.db import transaction

    from flagadmin.core.audit.events import EventType
    from flagadmin.core.audit.record import Event, copy_all
    from groups.access import Caller
    from projects.definitions import read_definitions

    flags = read_definitions(["shop"], "production").flags

    def events() -> Any:
        for number in range(count):
            flag = flags[number % len(flags)]
            after = flag["strategies"][0]
            before = after | {"parameters": after["parameters"] | {"rollout": str((number * 7) % 101)}}
            yield Event(
                type=EventType.FEATURE_STRATEGY_UPDATE,
                project="shop",
                environment="production",
                feature=flag["name"],
                before=before,
                after=after,
            )

    with transaction.atomic():
        copy_all(events(), actor=Caller.system())


def record_switches() -> None:
    """An event for each flag, which turned it to what it is."""
    from django.db import transaction

    from flagadmin.core.audit.events import EventType
    from flagadmin.core.audit.record import Event, copy_all
    from groups.access import Caller
    from projects.definitions import read_definitions

    turned = {True: EventType.FEATURE_ENVIRONMENT_ENABLED, False: EventType.FEATURE_ENVIRONMENT_DISABLED}
    flags = read_definitions(["shop"], "production").flags
    events = [
        Event(type=turned[flag["enabled"]], project="shop", environment="production", feature=flag["name"])
        for flag in flags
    ]
    with transaction.atomic():
        copy_all(events, actor=Caller.system())


def run(statement: str, *parameters: Any) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def measure(what: str, work: Callable[[], object], rounds: int = 5) -> None:
    times, cpu = [], []
    for _ in range(rounds):
        start, busy = time.perf_counter(), time.process_time()
        work()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    print(f"{what:58s} {min(times) * 1e3:8.0f} ms, {min(cpu) * 1e3:8.0f} ms of it CPU time of Python")


def first_flag() -> str:
    return str(run("SELECT name FROM projects_flag ORDER BY name LIMIT 1")[0][0])


def one_flag(moment: Any, name: str) -> None:
    from playground.engine.compilation import compile_snapshot

    read = moment.flags([name], "production")
    assert [flag["name"] for flag in read.flags] == [name]
    compile_snapshot(read.flags, read.segments, environment="production")


def main(flags: int = 5000, events: int = 10_000) -> None:
    from django.utils import timezone

    from playground.comparison import past
    from playground.snapshot_cache import cache, load_snapshot_at
    from projects.history.definitions_at import read_changed_since
    from projects.revision import read_revisions

    load("shop", flags)
    run(OTHERS.format(when="now() - interval '2 days' + n * interval '1 second'"), "shop")
    moment = timezone.now()
    record_changes(events)
    run(OTHERS.format(when="clock_timestamp()"), "other")
    run("ANALYZE")
    current = read_revisions(["shop"])

    def first_answer(*, present: bool, at: Any = None) -> None:
        past.cache.clear()
        if not present:
            cache.clear()
        past.compile_past(current, "production", past.Moment(at or moment, frozenset(["shop"])))

    def state() -> None:
        past.compile_past_state(current, "production", past.Moment(moment, frozenset(["shop"])))

    load_snapshot_at(current, "production")
    measure(f"{flags:,} flags, {events:,} events ago", lambda: first_answer(present=True))
    measure("  to compare, without the parts of an answer", state)
    measure("  in a worker that has not compiled the present", lambda: first_answer(present=False), 3)
    before = timezone.now()
    record_switches()
    run("ANALYZE")
    measure("  before a switch of all of them", lambda: first_answer(present=True, at=before))
    name = first_flag()
    there = past.Moment(moment, frozenset(["shop"]))
    measure("  one flag and its parents, in such a worker", lambda: one_flag(there, name))
    measure("  the documents only", lambda: read_changed_since(["shop"], "production", moment))
    measure(
        "  floor: reading the events",
        lambda: run(
            "SELECT before::text, after::text FROM audit_auditevent WHERE created_at > %s AND project = 'shop'",
            moment,
        ),
    )


if __name__ == "__main__":
    with data_directory():
        main(*(int(number) for number in sys.argv[1:]))
