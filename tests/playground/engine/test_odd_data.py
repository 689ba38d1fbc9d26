"""Odd stored data and contexts give a definite result or "can't tell", valid JSON, and no exception."""

import random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.explanation import State, explain
from playground.response.snapshot import compile_playground
from playground.response.writer import render_each, render_features
from tests.support.engine import NOW
from tests.support.examples import examples
from tests.support.generators import (
    ADDRESSES,
    NETWORKS,
    NUMBERS,
    PATTERNS,
    TIMES,
    VERSIONS,
    WORDS,
    contexts,
    states,
)

pytestmark = pytest.mark.exhaustive

SURROGATE = "\ud800"
TEXTS = (
    *WORDS,
    *NUMBERS,
    *VERSIONS,
    *TIMES,
    *ADDRESSES,
    *NETWORKS,
    *PATTERNS,
    SURROGATE,
    "a\\",
    '"',
    "\x00",
    "x" * 5_000,
)
KEYS = (
    "name", "project", "enabled", "strategies", "variants", "dependencies", "constraints", "segments", "parameters", "id",
    "title", "disabled", "contextName", "operator", "values", "value", "inverted", "caseInsensitive", "weight", "stickiness",
    "payload", "overrides", "feature", "rollout", "percentage", "groupId", "userIds", "IPs",
)  # fmt: skip

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.sampled_from((10**400, -(2**70), 2**53 + 1))
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def spoiled(draw: st.DrawFn, document: Any) -> Any:
    """A document in which some values have been replaced by anything."""
    if draw(st.integers(0, 9)) == 0:
        return draw(anything)
    if isinstance(document, dict):
        return {key: draw(spoiled(value)) for key, value in document.items() if draw(st.integers(0, 19))}
    if isinstance(document, list):
        return [draw(spoiled(item)) for item in document]
    return document


def looked_at(state: Any, sent: Any) -> Evaluation:
    """Everything the product does with definitions and a context."""
    segments = {segment["id"]: segment for segment in state["segments"]}
    snapshot = compile_playground(state["features"], segments, environment="production")
    evaluation = evaluate(snapshot.snapshot, Context(sent), now=NOW, random=random.Random(0).random)
    features = orjson.loads(render_features(snapshot, evaluation))
    assert [orjson.loads(feature) for feature in render_each(snapshot, evaluation)] == features
    for feature in features:
        explanation = explain(evaluation, feature["name"])
        assert explanation.state in State
        assert feature["isEnabled"] in (True, False)
        assert feature["reason"]
    return evaluation


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_spoiled_definitions_and_contexts(data: st.DataObject) -> None:
    state = data.draw(states())
    features = [data.draw(spoiled(feature)) for feature in state["features"]]
    segments = [
        {
            "id": segment["id"],
            "name": segment["name"],
            "constraints": data.draw(spoiled(segment["constraints"])),
        }
        for segment in state["segments"]
    ]

    looked_at({"features": features, "segments": segments}, data.draw(spoiled(data.draw(contexts()))))


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(definition=anything, sent=anything)
def test_anything_at_all(definition: Any, sent: Any) -> None:
    looked_at({"features": [definition], "segments": []}, sent)


def strategy_flag(**strategy: Any) -> dict[str, Any]:
    return {"name": "f", "project": "p", "enabled": True, "strategies": [{"name": "default", **strategy}]}


def state_of_flag(flag: dict[str, Any], sent: dict[str, Any] | None = None) -> State:
    evaluation = looked_at({"features": [flag], "segments": []}, sent or {})
    return explain(evaluation, "f").state


@pytest.mark.parametrize(
    "constraint",
    [
        None,
        5,
        {},
        {"contextName": None, "operator": "IN", "values": ["1"]},
        {"contextName": "userId", "operator": "NOSUCH", "values": ["1"]},
        {"contextName": "userId", "operator": None},
        {"contextName": "userId", "operator": "NUM_GT", "value": "five"},
        {"contextName": "userId", "operator": "NUM_GT", "value": None, "inverted": True},
        {"contextName": "userId", "operator": "DATE_AFTER", "value": "tomorrow", "inverted": True},
        {"contextName": "userId", "operator": "STR_CONTAINS", "values": None, "inverted": True},
        {"contextName": "userId", "operator": "IN_CIDR", "values": []},
        {"contextName": "userId", "operator": "REGEX", "value": "["},
        {"contextName": "userId", "operator": "SEMVER_EQ", "value": "v1.2.3", "inverted": True},
    ],
)
def test_a_constraint_nobody_can_read_never_holds(constraint: Any) -> None:
    assert state_of_flag(strategy_flag(constraints=[constraint]), {"userId": "1"}) is State.OFF


def test_a_constraint_sdks_cannot_read_switches_the_whole_flag_off_and_says_so() -> None:
    broken = {"contextName": "age", "operator": "NUM_GT", "value": "five"}
    flag = strategy_flag(constraints=[broken])
    flag["strategies"].append({"name": "default"})
    evaluation = looked_at({"features": [flag], "segments": []}, {})

    explanation = explain(evaluation, "f")

    assert explanation.state is State.OFF
    assert explanation.reason == 'SDKs cannot read this flag and keep it off: NUM_GT on age cannot use "five"'


def test_a_disabled_strategy_may_be_broken() -> None:
    broken = {"contextName": "age", "operator": "NUM_GT", "value": "five"}
    flag = strategy_flag(constraints=[broken], disabled=True)
    flag["strategies"].append({"name": "default"})

    assert state_of_flag(flag) is State.ON


def test_a_missing_segment_switches_the_flag_off() -> None:
    assert state_of_flag(strategy_flag(segments=[404])) is State.OFF


def test_an_invalid_pattern_matches_nothing() -> None:
    constraint = {"contextName": "userId", "operator": "REGEX", "value": "(", "inverted": True}

    assert state_of_flag(strategy_flag(constraints=[constraint]), {"userId": "1"}) is State.ON


def chain(length: int, *, closed: bool) -> list[dict[str, Any]]:
    """Flags of which each depends on the next; closed: the last one on the first."""
    flags = [{**strategy_flag(), "name": f"f{index}"} for index in range(length)]
    for index in range(length - (not closed)):
        flags[index]["dependencies"] = [{"feature": f"f{(index + 1) % length}"}]
    return flags


@pytest.mark.parametrize(
    ("length", "closed"), [(1, True), (2, True), (3, True), (20_000, False), (20_000, True)]
)
def test_chains_and_cycles_of_any_length_are_off(length: int, closed: bool) -> None:
    snapshot = compile_playground(chain(length, closed=closed), {}, environment="production")

    evaluation = evaluate(snapshot.snapshot, Context({}), now=NOW, random=random.random)

    on = {flag.name for flag, outcome in evaluation.pairs() if outcome.on}
    assert on == (set() if closed else {f"f{length - 1}", f"f{length - 2}"})


def test_two_flags_of_one_name_do_no_harm() -> None:
    flags = [strategy_flag(), {**strategy_flag(), "enabled": False}]

    looked_at({"features": flags, "segments": []}, {})


def test_null_everywhere() -> None:
    flag = {
        "name": "f",
        "project": None,
        "enabled": None,
        "strategies": None,
        "variants": None,
        "dependencies": None,
    }

    assert state_of_flag(flag) is State.OFF
    assert state_of_flag({**flag, "enabled": True}) is State.ON
