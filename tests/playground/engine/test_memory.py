"""The size a snapshot says it has, beside what it really holds."""

import gc
import random
import tracemalloc

import orjson
import pytest

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.snapshot import Snapshot
from playground.response.writer import compile_playground, render_features
from tests.benchmarks.bench_engine import make_flag
from tests.support.engine import NOW

FLAGS = 300


def plain_flag(index: int) -> dict[str, object]:
    return {"name": f"f{index}", "project": "default", "enabled": True, "strategies": [{"name": "default"}]}


def held(text: bytes) -> tuple[int, Snapshot]:
    """The bytes that remain of a snapshot when the documents are gone."""
    compile_playground(orjson.loads(text)[:2], {}, environment="production")
    gc.collect()
    tracemalloc.start()
    try:
        snapshot = compile_playground(orjson.loads(text), {}, environment="production")
        # An answer leaves something behind: what was written last is kept.
        render_features(evaluate(snapshot, Context({"userId": "42"}), now=NOW, random=random.random))
        gc.collect()
        return tracemalloc.get_traced_memory()[0], snapshot
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [make_flag, plain_flag])
def test_the_estimate_is_realistic(make: object) -> None:
    assert callable(make)
    size, snapshot = held(orjson.dumps([make(index) for index in range(FLAGS)]))

    assert 0.8 * size < snapshot.nbytes < 1.6 * size


def test_a_flag_of_the_benchmark_holds_less_than_ten_kilobytes() -> None:
    size, _ = held(orjson.dumps([make_flag(index) for index in range(FLAGS)]))

    assert size / FLAGS < 10_000
