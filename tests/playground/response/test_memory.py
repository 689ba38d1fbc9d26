"""A snapshot's estimated memory is close to what it really uses."""

import gc
import random
import tracemalloc
from collections.abc import Callable

import orjson
import pytest

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.response.writer import render_features
from tests.benchmarks.bench_engine import make_flag
from tests.support.engine import NOW, total_size

FLAGS = 300


def flag(index: int, *strategies: dict[str, object], **members: object) -> dict[str, object]:
    return {
        "name": f"f{index}",
        "project": "default",
        "enabled": True,
        "strategies": list(strategies),
        **members,
    }


def rollout(*constraints: dict[str, object], **members: object) -> dict[str, object]:
    parameters = {"rollout": "50", "stickiness": "userId", "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": list(constraints), **members}


def plain_flag(index: int) -> dict[str, object]:
    return flag(index, {"name": "default"})


def with_values(index: int, operator: str, *values: str) -> dict[str, object]:
    return flag(index, rollout({"contextName": "userId", "operator": operator, "values": values}))


def with_versions(index: int) -> dict[str, object]:
    fields = [f"field{number}" for number in range(10)]
    return flag(
        index,
        rollout(*({"contextName": f, "operator": "SEMVER_GT", "value": f"1.{index}.0"} for f in fields)),
    )


def with_variants(index: int) -> dict[str, object]:
    payloads = [{"type": "string", "value": f"{index}-{n}" * 200} for n in range(3)]
    return flag(
        index,
        rollout(),
        variants=[{"name": f"v{n}", "weight": 100, "payload": payload} for n, payload in enumerate(payloads)],
    )


def alike(index: int) -> dict[str, object]:
    """A flag that has its constraints and variants in common with all others."""
    variants = [{"name": name, "weight": 500, "payload": {"type": "string", "value": name}} for name in "ab"]
    plan = {"contextName": "plan", "operator": "IN", "values": ["pro", "team", "company"]}
    return flag(index, rollout(plan, id=f"{index}-0", variants=variants), rollout(plan, id=f"{index}-1"))


def user_ids(index: int) -> dict[str, object]:
    ids = ",".join(f"{index}-{n}" for n in range(100))
    return flag(index, {"name": "userWithId", "id": str(index), "parameters": {"userIds": ids}})


SHAPES = {
    "no strategies": flag,
    "many values": lambda index: with_values(index, "IN", *(f"{index}-{n}" for n in range(300))),
    "long values": lambda index: with_values(index, "IN", *(f"{index}-{n}" * 20 for n in range(50))),
    "networks": lambda index: with_values(
        index, "IN_CIDR", *(f"10.{index % 256}.{n}.0/24" for n in range(50))
    ),
    "versions": with_versions,
    "variants": with_variants,
    "alike": alike,
    "user ids": user_ids,
    "many strategies": lambda index: flag(index, *(rollout(id=f"{index}-{n}") for n in range(20))),
}


def held(text: bytes) -> tuple[int, ResponseSnapshot]:
    """The bytes that remain of a snapshot when the documents are gone."""
    compile_playground(orjson.loads(text)[:2], {}, environment="production")
    gc.collect()
    tracemalloc.start()
    try:
        snapshot = compile_playground(orjson.loads(text), {}, environment="production")
        # An answer leaves something behind: what was written last is kept.
        render_features(
            snapshot, evaluate(snapshot.snapshot, Context({"userId": "42"}), now=NOW, random=random.random)
        )
        gc.collect()
        return tracemalloc.get_traced_memory()[0], snapshot
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [make_flag, plain_flag])
def test_the_estimate_is_realistic(make: object) -> None:
    assert callable(make)
    size, snapshot = held(orjson.dumps([make(index) for index in range(FLAGS)]))

    assert 0.8 * size < total_size(snapshot) < 1.6 * size


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_whatever_the_shape_it_is_off_by_a_factor_of_two_at_most(make: Callable[[int], object]) -> None:
    size, snapshot = held(orjson.dumps([make(index) for index in range(FLAGS)]))

    assert 0.5 * size < total_size(snapshot) < 2 * size


def test_a_flag_of_the_benchmark_holds_less_than_ten_kilobytes() -> None:
    size, _ = held(orjson.dumps([make_flag(index) for index in range(FLAGS)]))

    assert size / FLAGS < 10_000
