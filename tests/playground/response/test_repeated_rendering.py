"""A flag's response template keeps no data from one response to the next."""

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.reasons import Reasons
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.response.writer import render_features
from tests.support.engine import NOW
from tests.support.examples import examples
from tests.support.generators import contexts, states


def compiled(state: dict[str, Any]) -> ResponseSnapshot:
    segments = {segment["id"]: segment for segment in state.get("segments", [])}
    return compile_playground(state["features"], segments, environment="production")


def rendered(snapshot: ResponseSnapshot, context: dict[str, Any]) -> bytes:
    chance = random.Random(0).random
    return render_features(snapshot, evaluate(snapshot.snapshot, Context(context), now=NOW, random=chance))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), requests=st.lists(contexts(), min_size=2, max_size=5))
def test_one_snapshot_answers_every_context_as_a_fresh_one_does(
    state: dict[str, Any], requests: list[dict[str, Any]]
) -> None:
    snapshot = compiled(state)

    for context in [*requests, *requests]:
        assert rendered(snapshot, context) == rendered(compiled(state), context)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), context=contexts())
def test_a_flag_has_the_same_reason_alone_and_among_all(
    state: dict[str, Any], context: dict[str, Any]
) -> None:
    evaluation = evaluate(compiled(state).snapshot, Context(context), now=NOW, random=random.Random(0).random)
    reasons = Reasons(evaluation)

    assert list(reasons.all()) == [reasons.flag(flag, outcome) for flag, outcome in evaluation.pairs()]
