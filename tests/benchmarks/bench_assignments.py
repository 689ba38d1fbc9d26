"""Assignments of a table of 100,000 rows: CPU by flags, and the memory that it takes.

A flag with 40 changes in a month: its rollout grows, conditions come and go. The figure for 1,000,000 rows is ten times the
one of the rows, without reading the history.

``python -m tests.benchmarks.bench_assignments [ROWS]`` (default: 100000)
"""

import os
import random
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
CHANGES = 40
MONTH = 30 * 86_400  # seconds


def make_table(rows: int) -> bytes:
    chance = random.Random(1)
    lines = ["userId,country,time,revenue"]
    for _ in range(rows):
        moment = START + timedelta(seconds=chance.randrange(MONTH))
        country = chance.choice(("NO", "SE", "DE", "US"))
        lines.append(f"{chance.randrange(10**9)},{country},{moment.isoformat()},{chance.random():.2f}")
    return "\n".join(lines).encode()


def make_state(change: int) -> Any:
    countries = {"contextName": "country", "operator": "IN", "values": ["NO", "SE"][: 1 + change % 2]}
    strategy = {
        "id": "s",
        "name": "flexibleRollout",
        "parameters": {"rollout": str(change * 100 // CHANGES), "stickiness": "default", "groupId": "f"},
        "constraints": [countries] if change % 3 else [],
        "segments": [],
        "variants": [
            {"name": name, "weight": 500, "weightType": "variable", "stickiness": "default"}
            for name in ("a", "b")
        ],
        "disabled": False,
    }
    return {
        "name": "f",
        "project": "shop",
        "enabled": change % 10 != 9,
        "impression_data": False,
        "stale": False,
        "variants": [],
        "strategies": [strategy],
        "dependencies": [],
    }


def main(rows: int) -> None:
    from playground.comparison.states import compile_definitions
    from playground.outcomes.answer import CHUNK, Assignments, answer_table
    from playground.outcomes.history import FlagHistory
    from playground.outcomes.table import Table
    from projects.definitions import Definitions

    body = make_table(rows)
    moments = [START + timedelta(seconds=MONTH * change / CHANGES) for change in range(CHANGES)]
    definitions = [Definitions([make_state(change)], {}) for change in range(CHANGES)]
    snapshots = list(compile_definitions("production", *definitions))
    for flags in (1, 20):
        history = FlagHistory("f", moments, snapshots, [str(change) for change in range(CHANGES)])
        begin = time.process_time()
        assignments = Assignments([history] * flags)
        table = Table(BytesIO(body), until=START + timedelta(days=31))
        length = sum(map(len, answer_table(table, assignments, CHUNK)))
        seconds = time.process_time() - begin
        print(
            f"{rows:,} rows x {flags} flags: {seconds:.2f} s of CPU, {length / 1e6:.0f} MB; "
            f"1,000,000 rows: {seconds / rows * 1e6:.0f} s; "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB of memory"
        )


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
