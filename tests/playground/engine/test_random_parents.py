"""Children of parents that chance decides are on as often as with Yggdrasil, the engine of SDKs.

Yggdrasil's draws cannot be seeded: the tolerance is five standard deviations.
"""

import json
from math import sqrt
from random import Random
from typing import Any

import pytest
from yggdrasil_engine.engine import UnleashEngine

from playground.engine.chance import find_state_over_calls
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.outcomes import State
from tests.support.comparison import shares_of, table_of
from tests.support.engine import NOW, compiled

CALLS = 4_000
XY = [("x", 300), ("y", 700)]
DEFAULT = {"name": "default"}


def variants(*weights: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight, "stickiness": "random"} for name, weight in weights]


def rollout(percent: int, *weights: tuple[str, int]) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "random", "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, "variants": variants(*weights)}


def state(parent: dict[str, Any], *dependencies: dict[str, Any]) -> dict[str, Any]:
    child = {"name": "child", "strategies": [DEFAULT], "dependencies": list(dependencies)}
    flags = [{"type": "release", "enabled": True} | flag for flag in (parent | {"name": "parent"}, child)]
    return {"version": 2, "features": flags, "segments": []}


def needs(*names: str, enabled: bool = True) -> dict[str, Any]:
    return {"feature": "parent", "enabled": enabled, "variants": list(names)}


def parent(*strategies: dict[str, Any], own: Any = ()) -> dict[str, Any]:
    return {"strategies": list(strategies), "variants": variants(*own)}


CASES = {
    "on": state(parent(rollout(50)), needs()),
    "off": state(parent(rollout(30)), needs(enabled=False)),
    "variant of every call": state(parent(rollout(100, *XY)), needs("x")),
    "variant of half of the calls": state(parent(rollout(50, *XY)), needs("x")),
    "the flag's own": state(parent(rollout(50), own=XY), needs("x")),
    "the flag's own on every call": state(parent(DEFAULT, own=XY), needs("x")),
    "none": state(parent(rollout(50)), needs("x")),
    "a strategy without any": state(parent(rollout(50, *XY), rollout(50)), needs("x")),
    "of the second strategy": state(parent(rollout(50, *XY), rollout(50, ("z", 1))), needs("z")),
    "own where no strategy passes": state(parent(rollout(50, *XY), own=[("z", 1)]), needs("z")),
    "twice": state(parent(rollout(100, *XY)), needs("x"), needs("x")),
}  # fmt: skip


def any_state(seed: int) -> dict[str, Any]:
    random = Random(seed)
    lists = ([], XY, [("x", 1)], [("z", 200), ("x", 800)])
    strategies = [
        random.choice((DEFAULT, rollout(random.choice((20, 50, 100)), *random.choice(lists))))
        for _ in range(random.randint(1, 3))
    ]
    names = random.choice(((), ("x",), ("z",), ("x", "z"), ("disabled",)))
    need = needs(*names) if random.random() < 0.9 else needs(enabled=False)
    return state(parent(*strategies, own=random.choice(lists)), need)


STATES = CASES | {f"random {seed}": any_state(seed) for seed in range(20)}
MANY = [*CASES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in STATES if name not in CASES)]


def share_in_sdks(flags: dict[str, Any]) -> float:
    engine = UnleashEngine()
    engine.take_state(json.dumps(flags))
    return sum(bool(engine._do_is_enabled("child", {"properties": {}})) for _ in range(CALLS)) / CALLS


def share_predicted(flags: dict[str, Any]) -> float:
    [shares] = shares_of(compiled(flags), table_of([{}]), "child")
    return float(sum(share for answer, share in shares if answer.state is State.ON))


def is_near(share: float, expected: float) -> bool:
    return abs(share - expected) <= 5 * sqrt(expected * (1 - expected) / CALLS)


@pytest.mark.parametrize("case", MANY)
def test_comparisons_predict_the_share(case: str) -> None:
    assert is_near(share_in_sdks(STATES[case]), share_predicted(STATES[case]))


@pytest.mark.parametrize("case", STATES)
def test_pages_show_the_share(case: str) -> None:
    evaluation = evaluate(compiled(STATES[case]), Context({}), now=NOW, random=Random(0).random)
    state, share = find_state_over_calls(evaluation, *evaluation.pair("child"))
    certain = 1.0 if state is State.ON else 0.0
    assert (certain if share is None else share) == pytest.approx(share_predicted(STATES[case]))


@pytest.mark.parametrize("case", MANY)
def test_single_evaluations_draw_alike(case: str) -> None:
    snapshot, draw = compiled(STATES[case]), Random(0)
    on = 0
    for _ in range(CALLS):
        on += evaluate(snapshot, Context({}), now=NOW, random=draw.random).pair("child")[1].on
    if case != "twice":  # no stored flag depends twice on another
        assert is_near(on / CALLS, share_predicted(STATES[case]))
