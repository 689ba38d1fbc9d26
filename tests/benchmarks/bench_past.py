"""The flags at a moment 10,000 changes ago, beside reading the present; and a flag's history of 500 changes.

``python -m tests.benchmarks.bench_past [FLAGS] [CHANGES]`` (default: 5000 10000).
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.live_server import data_directory

_EDIT = """
UPDATE projects_strategy SET parameters = parameters || jsonb_build_object('rollout', %s::text) WHERE sort_order = 0
"""
_EDIT_ONE = """
UPDATE projects_strategy SET parameters = parameters || jsonb_build_object('rollout', %s::text)
 WHERE sort_order = 0 AND flag_id = (SELECT id FROM projects_flag WHERE name = %s)
"""
_MOMENTS = """
SELECT DISTINCT valid_from FROM projects_strategyversion
 WHERE flag_id = (SELECT id FROM projects_flag WHERE name = %s) ORDER BY 1 DESC LIMIT 500
"""
_SWITCH = "UPDATE projects_flagenvironment SET enabled = NOT enabled WHERE environment_id = 'production'"


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


def whole_history(name: str, moments: list[Any]) -> None:
    from projects.history.timeline import read_timeline

    timeline = read_timeline([name])
    for moment in moments:
        assert timeline.read_definitions([name], "production", moment).by_name()[name]
        assert timeline.read_state(name, moment)


def main(flags: int = 5000, changes: int = 10_000) -> None:
    from django.utils import timezone

    from playground.comparison import past
    from playground.snapshot_cache import cache, load_snapshot_at
    from projects.definitions import read_definitions
    from projects.history.definitions_at import read_changed_since
    from projects.revision import read_revisions

    load("shop", flags)
    moment = timezone.now()
    for number in range(changes // flags):
        run(_EDIT, str(number))
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
    measure(f"{flags:,} flags, {changes:,} changes ago", lambda: first_answer(present=True))
    measure("  to compare, without the parts of an answer", state)
    measure("  in a worker that has not compiled the present", lambda: first_answer(present=False), 3)
    name = first_flag()
    there = past.Moment(moment, frozenset(["shop"]))
    measure("  one flag and its parents, in such a worker", lambda: one_flag(there, name))
    measure("  the documents only", lambda: read_changed_since(["shop"], "production", moment))
    measure("  all documents", lambda: read_definitions(["shop"], "production", at=moment))
    measure("  those of the present", lambda: read_definitions(["shop"], "production"))
    for number in range(500):
        run(_EDIT_ONE, str(number), name)
    moments = [at for (at,) in run(_MOMENTS, name)]
    measure("  a flag's history of 500 changes: all its states", lambda: whole_history(name, moments))
    before = timezone.now()
    run(_SWITCH)
    run("ANALYZE")
    current = read_revisions(["shop"])
    measure("  before a switch of all of them", lambda: first_answer(present=True, at=before))


if __name__ == "__main__":
    with data_directory():
        main(*(int(number) for number in sys.argv[1:]))
