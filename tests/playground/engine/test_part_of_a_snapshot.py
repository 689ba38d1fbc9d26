"""A flag is evaluated alone, with its parents, as among all flags."""

from typing import Any

import pytest
from hypothesis import given, settings

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import explain
from tests.support.engine import NOW, compiled
from tests.support.examples import examples
from tests.support.generators import contexts, states

pytestmark = pytest.mark.exhaustive


@settings(max_examples=examples(200), deadline=None)
@given(states(), contexts())
def test_alone_as_among_all(state: Any, context: Any) -> None:
    snapshot = compiled(state)
    every, *alone = (
        evaluate(part, Context(context), now=NOW, random=lambda: 0.3)
        for part in (snapshot, *map(snapshot.only, snapshot.names))
    )
    for name, evaluation in zip(snapshot.names, alone, strict=True):
        assert explain(evaluation, name) == explain(every, name)
