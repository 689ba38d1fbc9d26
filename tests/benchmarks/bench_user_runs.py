"""Measures evaluating a CSV of users: CPU seconds and memory of 100,000 users and 50 flags.

    python tests/benchmarks/bench_user_runs.py [USERS [FLAGS]]

The flags are those of ``bench_engine``. The floor is evaluating every user with reasons and writing nothing. The target
is 60 s and 300 MB.
"""

import os
import random
import resource
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"  # no database is used
from flagadmin.core.server.memory import settle
from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from tests.benchmarks.bench_engine import make_flag

NOW = "2026-11-21T09:00:00.000Z"


def user_file(users: int) -> bytes:
    drawn = random.Random(1)
    lines = (
        f"user-{number},{drawn.choice(('NO', 'SE', 'US', 'DE'))},1.{drawn.randrange(30)}.{drawn.randrange(9)},"
        f"{drawn.randrange(80)}\n"
        for number in range(users)
    )
    return ("userId,country,appVersion,age\n" + "".join(lines)).encode()


def floor(snapshot: Snapshot, body: bytes) -> str:
    from playground.user_runs.file import UserFile

    for _, fields in UserFile(BytesIO(body)).users():
        context = Context.of_texts(fields, now=NOW)
        list(Reasons(Evaluation(snapshot, context, lambda: 0.0)).all())
    return ""


def measured(what: str, work: Callable[[], str]) -> None:
    begun, cpu = time.perf_counter(), time.process_time()
    note = work()
    cpu, took = time.process_time() - cpu, time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{what:34s} {cpu:7.1f} CPU s {took:7.1f} s; peak so far {peak:5.0f} MB {note}\n")


def main() -> None:
    django.setup()
    settle()
    from playground.user_runs.evaluate import UserEvaluation, estimate_bytes
    from playground.user_runs.file import UserFile

    users, flags = (*map(int, sys.argv[1:]), *(100_000, 50)[len(sys.argv) - 1 :])
    snapshot = compile_snapshot([make_flag(index) for index in range(flags)], {}, environment="production")
    body = user_file(users)

    def check() -> str:
        return f"{UserFile(BytesIO(body)).check({'userId', 'country', 'appVersion', 'age'}):,} users"

    def evaluate() -> str:
        evaluation = UserEvaluation(snapshot, snapshot.names, now=NOW)
        sizes = [(len(chunk.data), chunk.size) for chunk in evaluation.chunks(UserFile(BytesIO(body)))]
        packed, plain = (sum(each) / 1e6 for each in zip(*sizes, strict=True))
        return f"{plain:,.0f} MB of CSV, {packed:,.0f} MB compressed"

    def estimate() -> str:
        evaluation = UserEvaluation(snapshot, snapshot.names, now=NOW)
        needed = estimate_bytes(evaluation, UserFile(BytesIO(body)), users=users, flags=flags)
        return f"{needed / 1e6:,.0f} MB compressed"

    measured("checking the file", check)
    measured("estimating the result", estimate)
    measured("evaluating and writing", evaluate)
    measured("  floor: evaluating with reasons", lambda: floor(snapshot, body))


if __name__ == "__main__":
    main()
