"""Measures the engine and the wire: µs per flag, beside the floor of serializing the same answer with orjson.

    python tests/benchmarks/bench_engine.py [FLAGS ...]

The shape is the one the product's targets speak of: each flag has two strategies (one with three
constraints), both flexibleRollout, and two strategy variants; 1,000 flags answer with about 1.9 MB.
"""

import gc
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.response.writer import render_features
from tests.support.engine import total_size

ROUNDS = 15


def make_flag(index: int) -> dict[str, Any]:
    """One flag of the benchmark's shape."""
    name = f"bench-flag-{index:05d}"
    variants = [
        {
            "name": label,
            "weight": 500,
            "weightType": "variable",
            "stickiness": "userId",
            "payload": {"type": "string", "value": f"{label}-{index}"},
        }
        for label in ("control", "treatment")
    ]
    constraints = [
        {
            "contextName": "country",
            "operator": "IN",
            "values": ["NO", "SE", "DK", f"X{index % 50}"],
            "inverted": False,
            "caseInsensitive": False,
        },
        {
            "contextName": "appVersion",
            "operator": "SEMVER_GT",
            "value": f"1.{index % 20}.0",
            "values": [],
            "inverted": False,
            "caseInsensitive": False,
        },
        {
            "contextName": "age",
            "operator": "NUM_GTE",
            "value": str(index % 60),
            "values": [],
            "inverted": False,
            "caseInsensitive": False,
        },
    ]
    return {
        "name": name,
        "project": "default",
        "enabled": True,
        "variants": [],
        "dependencies": [],
        "impression_data": False,
        "strategies": [
            {
                "id": f"01J0000000000000000000{index:05d}A",
                "name": "flexibleRollout",
                "title": "",
                "disabled": False,
                "constraints": constraints,
                "segments": [],
                "variants": variants,
                "parameters": {"rollout": str(index % 101), "stickiness": "userId", "groupId": name},
            },
            {
                "id": f"01J0000000000000000000{index:05d}B",
                "name": "flexibleRollout",
                "title": "Everyone else",
                "disabled": False,
                "constraints": [],
                "segments": [],
                "variants": [],
                "parameters": {"rollout": str(index * 7 % 101), "stickiness": "default", "groupId": name},
            },
        ],
    }


def median_seconds(work: Callable[[], object]) -> float:
    """The median time of some rounds, after one to warm up."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def traced(text: bytes) -> tuple[int, ResponseSnapshot]:
    """The bytes that a snapshot of these documents holds once the documents are gone, and the snapshot."""
    compile_playground(orjson.loads(text)[:2], {}, environment="production")
    gc.collect()
    tracemalloc.start()
    snapshot = compile_playground(orjson.loads(text), {}, environment="production")
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, snapshot


def measure(count: int) -> str:
    text = orjson.dumps([make_flag(index) for index in range(count)])
    held, snapshot = traced(text)
    documents = orjson.loads(text)
    context = Context(
        {"userId": "user-4711", "properties": {"country": "NO", "appVersion": "1.7.3", "age": "31"}}
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def evaluated() -> Any:
        return evaluate(snapshot.snapshot, context, now=now, random=random.random)

    evaluation = evaluated()
    answer = render_features(snapshot, evaluation)
    decoded = orjson.loads(answer)
    compiling = median_seconds(lambda: compile_playground(documents, {}, environment="production"))
    evaluating = median_seconds(evaluated)
    both = median_seconds(lambda: render_features(snapshot, evaluated()))
    floor = median_seconds(lambda: orjson.dumps(decoded))
    return (
        f"{count:6d}  {len(answer) / 1e6:8.2f}  {compiling / count * 1e6:8.1f}  {evaluating / count * 1e6:8.2f}"
        f"  {(both - evaluating) / count * 1e6:8.2f}  {both / count * 1e6:8.2f}  {both * 1e3:9.2f}"
        f"  {floor / count * 1e6:8.2f}  {held / count:8.0f}  {total_size(snapshot) / count:8.0f}"
    )


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:]] or [100, 1_000, 5_000, 50_000]
    sys.stdout.write(
        " flags        MB   compile  evaluate    render      both    both ms     floor  bytes/flag  nbytes/flag\n"
    )
    sys.stdout.write(
        "                                      µs per flag                          (traced)  (estimate)\n"
    )
    for count in counts:
        sys.stdout.write(measure(count) + "\n")


if __name__ == "__main__":
    main()
