"""An answer agrees with itself, and with its explanation: what is on has a strategy that is on, whose conditions hold."""

import random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import FlagExplanation, StrategyExplanation, explain
from playground.engine.outcomes import State
from playground.response.snapshot import compile_playground
from playground.response.writer import render_features
from tests.support.engine import NOW
from tests.support.examples import examples
from tests.support.generators import contexts, states

Answer = dict[str, Any]


@pytest.mark.exhaustive
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), context=contexts(), disabled=st.lists(st.booleans(), min_size=12, max_size=12))
def test_results_and_reasons_agree(state: Answer, context: Answer, disabled: list[bool]) -> None:
    for flag in state["features"]:
        flag["project"] = "shop"
        for number, strategy in enumerate(flag["strategies"]):
            strategy |= {"id": f"{flag['name']}-{number}", "disabled": disabled.pop()}
    segments = {segment["id"]: segment for segment in state["segments"]}
    snapshot = compile_playground(state["features"], segments, environment="production")
    evaluation = evaluate(snapshot.snapshot, Context(context), now=NOW, random=random.Random(0).random)
    for answer in orjson.loads(render_features(snapshot, evaluation)):
        why = explain(evaluation, answer["name"])
        if evaluation.pair(answer["name"])[0].fault is None:  # SDKs can read it
            check_flag(answer, why)
        check_variant(answer, why)
        for shown, explained in zip(answer["strategies"]["data"], why.strategies, strict=True):
            check_strategy(shown, explained)


def check_flag(answer: Answer, why: FlagExplanation) -> None:
    result, rows = answer["strategies"]["result"], answer["strategies"]["data"]
    is_on = answer["isEnabledInCurrentEnvironment"] and result is True
    assert answer["isEnabled"] == (is_on and not answer["hasUnsatisfiedDependency"])
    assert answer["isEnabled"] == (why.state is State.ON)
    assert answer["hasUnsatisfiedDependency"] == any(parent.problem for parent in why.parents)
    assert answer["reason"] == why.reason
    if rows:
        results = [row["result"]["enabled"] for row in rows if not row["disabled"]]
        expected = True if True in results else "unknown" if "unknown" in results else False
        assert result == expected
        first = next((row["id"] for row in rows if row["result"]["enabled"] is True), None)
        assert [strategy.id for strategy in why.strategies if strategy.decides] == ([first] if first else [])


def check_variant(answer: Answer, why: FlagExplanation) -> None:
    given = answer["variant"]
    assert given["feature_enabled"] == answer["isEnabled"]
    if not given["enabled"]:
        return
    assert answer["isEnabled"]
    assert given["name"] == why.variant_name
    deciding = [strategy.variant for strategy in why.strategies if strategy.decides]
    picked = why.variant or deciding[0]
    assert picked is not None
    assert picked.name == given["name"]
    [share] = [share for share in picked.shares if share.chosen]
    assert picked.place is None or share.first <= picked.place <= share.last


def check_strategy(shown: Answer, why: StrategyExplanation) -> None:
    explained = [each.holds for each in why.constraints]  # behind them those of strategy types: userIds, IPs
    assert [each["result"] for each in shown["constraints"]] == explained[: len(shown["constraints"])]
    results = {segment["name"]: segment["result"] for segment in shown["segments"]}
    assert results.items() >= {segment.name: segment.holds for segment in why.segments}.items()
    for segment in shown["segments"]:
        if segment["constraints"]:
            assert segment["result"] == all(each["result"] for each in segment["constraints"])
    if shown["result"]["enabled"] is True:
        assert not shown["disabled"]
        assert all(each["result"] for each in (*shown["constraints"], *shown["segments"]))
        assert why.rollout is None or why.rollout.inside
