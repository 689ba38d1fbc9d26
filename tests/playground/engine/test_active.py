"""Whatever flags and contexts are like, those that are on are the evaluator's, with the same variants."""

from typing import Any

import pytest
from hypothesis import given, settings

from playground.engine.active import ActiveFlags, Pieces
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.outcomes import find_chosen_variant
from playground.engine.snapshot import Snapshot
from tests.support.engine import NOW, compiled
from tests.support.examples import examples
from tests.support.generators import contexts, states
from tests.support.odd_flags import OddFlags

Active = tuple[str, int, int | None]
"""The name of a flag, the strategy that decided about its variant (-1: the flag), and the variant."""


def drawn() -> float:
    return 0.3


def found_quickly(snapshot: Snapshot, context: Context) -> list[Active]:
    def pieces_of(position: int) -> Pieces[Active]:
        flag = snapshot.flags[position]
        own = flag.variants.names if flag.variants else ()
        lists = [strategy.variants.names if strategy.variants else () for strategy in flag.strategies]
        return Pieces(
            (flag.name, -1, None),
            tuple((flag.name, -1, pick) for pick in range(len(own))),
            tuple(
                tuple((flag.name, place, pick) for pick in range(len(names)))
                for place, names in enumerate(lists)
            ),
        )

    return ActiveFlags(snapshot, pieces_of).find(context.at(NOW), drawn).active


def found_by_evaluator(snapshot: Snapshot, context: Context) -> list[Active]:
    active = list[Active]()
    for flag, outcome in evaluate(snapshot, context, now=NOW, random=drawn).pairs():
        if not outcome.on:
            continue
        variants, pick = find_chosen_variant(flag, outcome) or (None, None)
        place = -1 if variants is None or variants is flag.variants else outcome.decided
        active.append((flag.name, place, pick))
    return active


@settings(max_examples=examples(400), deadline=None)
@given(states(), contexts())
def test_any_flags(state: Any, context: Any) -> None:
    snapshot = compiled(state)
    assert found_quickly(snapshot, Context(context)) == found_by_evaluator(snapshot, Context(context))


@pytest.mark.parametrize("seed", range(examples(60)))
def test_odd_flags(seed: int) -> None:
    odd = OddFlags(seed)
    active = 0
    for _ in range(20):
        snapshot = compiled(odd.state())
        for _ in range(10):
            context = Context(odd.context())
            quickly = found_quickly(snapshot, context)
            assert quickly == found_by_evaluator(snapshot, context)
            active += len(quickly)
    assert active


def rollout(percentage: int, stickiness: str = "default", **more: Any) -> dict[str, Any]:
    parameters = {"rollout": str(percentage), "stickiness": stickiness, "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, **more}


@pytest.mark.parametrize(
    ("strategy", "context", "draws"),
    [
        (rollout(50), {}, 1),
        (rollout(50), {"userId": "7"}, 0),
        (rollout(50, "random"), {"userId": "7"}, 1),
        (rollout(100), {}, 0),
        (rollout(0), {}, 0),
        (rollout(100, variants=[{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]), {}, 1),
        (rollout(100, variants=[{"name": "a", "weight": 1}]), {}, 0),
    ],
)
def test_chance_is_asked_only_where_it_decides(strategy: Any, context: Any, draws: int) -> None:
    asked = list[float]()

    def counted() -> float:
        asked.append(0.3)
        return 0.3

    state = {"features": [{"name": "f", "enabled": True, "strategies": [strategy]}]}
    active = ActiveFlags(compiled(state), lambda _: Pieces("f", (), (("f", "f"),)))
    active.find(Context(context).at(NOW), counted)
    assert len(asked) == draws
