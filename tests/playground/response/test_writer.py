"""The playground's response has the reference's keys and formats, and additional keys."""

import random
from typing import Any

import orjson
import pytest

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import explain
from playground.response import writer
from playground.response.snapshot import compile_playground
from playground.response.writer import render_each, render_features
from tests.support.definitions import NORWAY, SEGMENTS, flag, needs, rollout, strategy
from tests.support.engine import NOW

VARIANTS = [
    {
        "name": "red",
        "weight": 1000,
        "weightType": "variable",
        "payload": {"type": "json", "value": '{"a":1}'},
    },
    {"name": "blue", "weight": 0, "weightType": "fix"},
]
OFF = {"name": "disabled", "enabled": False, "feature_enabled": False}


def answer(*flags: dict[str, Any], sent: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    snapshot = compile_playground(flags, SEGMENTS, environment="production")
    evaluation = evaluate(snapshot.snapshot, Context(sent), now=NOW, random=random.Random(0).random)
    found: list[dict[str, Any]] = orjson.loads(render_features(snapshot, evaluation))
    return found


def one(
    definition: dict[str, Any], *others: dict[str, Any], sent: dict[str, Any] | None = None
) -> dict[str, Any]:
    return next(
        found for found in answer(definition, *others, sent=sent) if found["name"] == definition["name"]
    )


def test_a_whole_flag() -> None:
    first = rollout("100", NORWAY) | {"id": "s1", "title": "Norway", "segments": [1], "variants": VARIANTS}

    found = one(flag(first), sent={"userId": "42", "country": "NO"})

    assert found == {
        "isEnabled": True,
        "isEnabledInCurrentEnvironment": True,
        "hasUnsatisfiedDependency": False,
        "variant": {
            "name": "red",
            "enabled": True,
            "payload": VARIANTS[0]["payload"],
            "feature_enabled": True,
        },
        "variants": VARIANTS,
        "name": "f",
        "projectId": "shop",
        "strategies": {
            "result": True,
            "data": [
                {
                    "name": "flexibleRollout",
                    "id": "s1",
                    "title": "Norway",
                    "disabled": False,
                    "parameters": {"rollout": "100", "stickiness": "userId", "groupId": "g"},
                    "result": {
                        "enabled": True,
                        "evaluationStatus": "complete",
                        "variant": {"name": "red", "enabled": True, "payload": VARIANTS[0]["payload"]},
                        "variants": VARIANTS,
                    },
                    "constraints": [
                        {
                            "inverted": False,
                            "contextName": "country",
                            "operator": "IN",
                            "values": ["NO"],
                            "result": True,
                        }
                    ],
                    "segments": [
                        {
                            "name": "beta-testers",
                            "id": 1,
                            "result": True,
                            "constraints": [
                                {"contextName": "userId", "operator": "IN", "values": ["42"], "result": True}
                            ],
                        }
                    ],
                    "links": {
                        "edit": "/projects/shop/features/f/strategies/edit?environmentId=production&strategyId=s1"
                    },
                    "rollout": {
                        "threshold": 100,
                        "stickiness": "userId",
                        "bucket": 81,
                        "field": "userId",
                        "value": "42",
                    },
                }
            ],
        },
        "reason": "country is NO; in segment beta-testers; userId 42 is in bucket 81, 100 % rollout",
    }


def test_no_flags() -> None:
    assert answer() == []


@pytest.mark.parametrize("at_once", [1, 2, 7, 1_000])
def test_an_answer_is_the_same_however_it_is_joined(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = [flag(rollout("50"), name="a"), flag(strategy(), name="b"), flag(name="c")]
    whole = answer(*flags)
    monkeypatch.setattr(writer, "JOINED", at_once)
    assert answer(*flags) == whole
    assert [each["name"] for each in whole] == ["a", "b", "c"]


def test_no_strategies() -> None:
    found = one(flag())

    assert found["strategies"] == {"result": True, "data": []}
    assert one(flag(enabled=False))["strategies"] == {"result": False, "data": []}


def test_flags_come_by_name_and_each_alone_is_the_same() -> None:
    flags = [flag(strategy(), name=name) for name in ("b", "é", "a", "B", "10", "2")]
    snapshot = compile_playground(flags, {}, environment="production")
    evaluation = evaluate(snapshot.snapshot, Context({}), now=NOW, random=random.random)

    names = [found["name"] for found in orjson.loads(render_features(snapshot, evaluation))]

    assert names == ["10", "2", "B", "a", "b", "é"] == snapshot.snapshot.names
    assert [orjson.loads(each)["name"] for each in render_each(snapshot, evaluation)] == names


NOTHING = OFF | {"feature_enabled": True, "featureEnabled": True}
"""The variant of a flag that is on and has none."""
RED = NOTHING | {"name": "red", "enabled": True, "payload": VARIANTS[0]["payload"]}


@pytest.mark.parametrize(
    ("definition", "variant", "variants"),
    [
        (flag(strategy(), enabled=False, variants=VARIANTS), OFF, VARIANTS),
        (flag(strategy("default", NORWAY), variants=VARIANTS), OFF, VARIANTS),
        (flag(strategy()), NOTHING, []),
        (flag(strategy(), variants=VARIANTS), RED, VARIANTS),
        (flag(strategy(), variants=[VARIANTS[1]]), NOTHING, [VARIANTS[1]]),
        (flag(strategy(variants=VARIANTS), enabled=False), OFF, VARIANTS),
    ],
)
def test_forms_of_a_variant(definition: dict[str, Any], variant: dict[str, Any], variants: list[Any]) -> None:
    found = one(definition, sent={"userId": "42"})

    assert found["variant"] == variant
    assert found["variants"] == variants


@pytest.mark.parametrize(
    ("definition", "enabled", "status", "whole"),
    [
        (strategy(), True, "complete", True),
        (strategy("default", NORWAY), False, "complete", False),
        (strategy("hostGroup"), "unknown", "incomplete", "unknown"),
        (strategy("hostGroup", NORWAY), False, "incomplete", False),
        (strategy("applicationHostname"), "unknown", "incomplete", "unknown"),
        (strategy(disabled=True), "unknown", "unevaluated", False),
        (strategy("default", NORWAY, disabled=True), "unknown", "unevaluated", False),
        (strategy("hostGroup", disabled=True), "unknown", "incomplete", False),
        (strategy("userWithId", userIds="42"), True, "complete", True),
    ],
)
def test_result_of_a_strategy(
    definition: dict[str, Any], enabled: object, status: str, whole: object
) -> None:
    found = one(flag(definition), sent={"userId": "42"})

    [evaluated] = found["strategies"]["data"]
    assert evaluated["result"] == {"enabled": enabled, "evaluationStatus": status}
    assert evaluated["disabled"] is bool(definition.get("disabled"))
    assert found["strategies"]["result"] == whole
    assert found["isEnabled"] is (whole is True)


def test_variants_of_a_strategy_that_fails_are_shown() -> None:
    found = one(flag(strategy("default", NORWAY, variants=VARIANTS)), sent={"userId": "42"})

    assert found["strategies"]["data"][0]["result"]["variant"]["name"] == "red"
    assert found["variant"] == OFF
    assert found["variants"] == []


def test_every_constraint_has_its_own_result() -> None:
    conditions = [needs("a", "IN", "1"), needs("b", "IN", "1"), needs("c", "IN", "1"), needs("d", "IN", "1")]

    for number in range(16):
        bits = [bool(number >> index & 1) for index in range(4)]
        sent = {field: "1" for field, holds in zip("abcd", bits, strict=True) if holds}
        found = one(flag(strategy("default", *conditions)), sent=sent)["strategies"]["data"][0]
        assert [constraint["result"] for constraint in found["constraints"]] == bits


def test_constraints_are_echoed_as_stored_with_defaults_and_text() -> None:
    stored = {"contextName": "age", "operator": "NUM_GT", "value": 5, "note": "kept", "result": "overwritten"}

    found = one(flag(strategy("default", stored)), sent={"age": "6"})["strategies"]["data"][0]["constraints"]

    assert found == [
        {
            "inverted": False,
            "values": [],
            "contextName": "age",
            "operator": "NUM_GT",
            "note": "kept",
            "value": "5",
            "result": True,
        }
    ]


def test_parameters_are_texts_and_empty_titles_are_left_out() -> None:
    definition = strategy(title="") | {
        "parameters": {"a": 1, "b": True, "c": None, "d": {"e": [1]}, "f": 1.0}
    }

    found = one(flag(definition))["strategies"]["data"][0]

    assert found["parameters"] == {"a": "1", "b": "true", "c": "", "d": '{"e":[1]}', "f": "1"}
    assert "title" not in found


def test_a_rollout_with_nothing_to_hash_has_no_bucket() -> None:
    found = one(flag(rollout("50")))["strategies"]["data"][0]["rollout"]

    assert found == {"threshold": 50, "stickiness": "userId", "bucket": None}


def test_a_drawn_bucket_has_no_field() -> None:
    found = one(flag(rollout("50", stickiness="random")), sent={"userId": "42"})["strategies"]["data"][0][
        "rollout"
    ]

    assert found.keys() == {"threshold", "stickiness", "bucket"}
    assert 1 <= found["bucket"] <= 100


def test_unsatisfied_parents_are_named() -> None:
    child = flag(strategy(), dependencies=[{"feature": "gone"}, {"feature": "on"}, {"feature": "off"}])
    others = flag(strategy(), name="on"), flag(strategy(), name="off", enabled=False)

    found = one(child, *others)

    assert (found["isEnabled"], found["hasUnsatisfiedDependency"]) == (False, True)
    assert found["strategies"]["result"] is True
    assert found["unsatisfiedDependencies"] == ["gone", "off"]
    assert "unsatisfiedDependencies" not in one(*others)


def test_texts_are_escaped() -> None:
    name = 'a"b\\c\n\u2028é😀'
    sent = {"country": 'N"O\\\n\x00', "userId": 'u"\n'}

    found = one(flag(rollout("0", needs("country", "IN", name)), rollout("0"), name=name), sent=sent)

    assert found["name"] == name
    assert found["reason"].startswith(
        'Strategy 1: country is N"O\\<U+000A><U+0000>, needs one of a"b\\c<U+000A><U+2028>é😀. '
    )
    assert found["strategies"]["data"][1]["rollout"]["value"] == sent["userId"]


def test_one_flag_with_its_parents_is_evaluated_alike() -> None:
    flags = [
        flag(strategy(), dependencies=[{"feature": "p"}]),
        flag(rollout("0"), name="p"),
        flag(strategy(), name="other"),
    ]
    snapshot = compile_playground(flags, {}, environment="production")
    whole = evaluate(snapshot.snapshot, Context({}), now=NOW, random=random.random)

    alone = evaluate(snapshot.snapshot.only("f"), Context({}), now=NOW, random=random.random)

    assert alone.snapshot.names == ["f", "p"]
    assert explain(alone, "f") == explain(whole, "f")
    assert snapshot.snapshot.only("nosuch").names == []


def test_a_parent_that_was_not_asked_for_is_missing() -> None:
    child = flag(strategy(), dependencies=[{"feature": "p"}])
    snapshot = compile_playground([child], {}, environment="production")
    evaluation = evaluate(snapshot.snapshot, Context({}), now=NOW, random=random.random)

    assert orjson.loads(render_features(snapshot, evaluation))[0]["unsatisfiedDependencies"] == ["p"]
