"""Regular expressions in constraints: limits on pattern length, memory and input, and results beyond them."""

import random
from typing import Any

import pytest

from playground.engine import operators
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import State, explain
from playground.engine.operators import find_problem
from playground.response.snapshot import compile_playground
from playground.response.writer import render_features
from tests.support.engine import NOW
from tests.support.limited_process import run_limited

TOO_LONG = "x" * (operators.MAX_LENGTH + 1)
TOO_LARGE = r"\p{L}{1,300}"
LONG_TEXT = "a" * (operators.MAX_TEXT_LENGTH + 1)


def flag(*constraints: dict[str, Any], **strategy: Any) -> dict[str, Any]:
    strategies = [{"name": "default", "constraints": list(constraints), **strategy}]
    return {"name": "f", "project": "p", "enabled": True, "strategies": strategies}


def matching(pattern: str, **fields: Any) -> dict[str, Any]:
    return {"contextName": "userId", "operator": "REGEX", "value": pattern, **fields}


def explained(document: dict[str, Any], user: str, segments: dict[int, Any] | None = None) -> Any:
    snapshot = compile_playground([document], segments or {}, environment="e")
    evaluation = evaluate(snapshot.snapshot, Context({"userId": user}), now=NOW, random=random.random)
    assert b'"result":"unknown"' in render_features(snapshot, evaluation) or explain(
        evaluation, "f"
    ).state != (State.UNKNOWN)
    return explain(evaluation, "f")


@pytest.mark.parametrize(
    ("pattern", "why"), [(TOO_LONG, "longer than 2,000 characters"), (TOO_LARGE, "too much memory")]
)
@pytest.mark.parametrize("inverted", [False, True])
def test_what_is_stored_already_cannot_be_told(pattern: str, why: str, inverted: bool) -> None:
    explanation = explained(flag(matching(pattern, inverted=inverted)), "u")

    assert (explanation.state, explanation.strategies[0].state) == (State.UNKNOWN, State.UNKNOWN)
    assert explanation.reason.startswith("The regular expression for userId ")
    assert why in explanation.reason
    assert explanation.strategies[0].constraints[0].sentence == explanation.reason


def test_in_a_segment_too() -> None:
    segments = {1: {"id": 1, "name": "s", "constraints": [matching(TOO_LONG)]}}
    explanation = explained(flag(segments=[1]), "u", segments)
    assert explanation.state is State.UNKNOWN
    assert "longer than" in explanation.reason


@pytest.mark.parametrize("inverted", [False, True])
def test_a_long_text_cannot_be_told(inverted: bool) -> None:
    explanation = explained(flag(matching("a", inverted=inverted)), LONG_TEXT)
    assert explanation.state is State.UNKNOWN
    assert (
        explanation.reason
        == "userId is too long for a regular expression here; only your SDK can evaluate it"
    )


def test_what_fails_anyway_is_off() -> None:
    never = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    assert explained(flag(matching(TOO_LONG), never), "u").state is State.OFF
    assert explained(flag(matching("a"), never), LONG_TEXT).state is State.OFF


@pytest.mark.parametrize(("repeated", "longest"), [(1, 10_000), (100, 1_000), (1_900, 100)])
@pytest.mark.parametrize("fold", [False, True])
def test_the_larger_the_pattern_the_shorter_the_text(repeated: int, longest: int, fold: bool) -> None:
    document = flag(matching("a*" + "a" * repeated, caseInsensitive=fold))
    text = "a" * longest
    assert explained(document, text).state in (State.ON, State.OFF)
    assert explained(document, text + "a").state is State.UNKNOWN


def test_the_longest_of_both_is_told() -> None:
    pattern = "a" * operators.MAX_LENGTH
    assert explained(flag(matching("a+$")), "a" * operators.MAX_TEXT_LENGTH).state is State.ON
    assert explained(flag(matching(pattern)), "a").state is State.OFF


@pytest.mark.processes
def test_a_full_flag_takes_little_time() -> None:
    """One such constraint took half a second over 10,000 characters, and a flag may have 900 of them."""
    run_limited(
        """
        import random
        from playground.engine import operators
        from playground.engine.context import Context
        from playground.engine.evaluator import evaluate
        from playground.response.snapshot import compile_playground
        from playground.response.writer import render_features
        from tests.support.engine import NOW

        def strategy(pattern):
            constraint = {"contextName": "userId", "operator": "REGEX", "value": pattern, "inverted": True}
            return {"name": "default", "constraints": [constraint] * 30}

        def flag(pattern):
            return {"name": "f", "project": "p", "enabled": True, "strategies": [strategy(pattern)] * 30}

        chance = random.Random(1)
        for pattern in ("[ab]*a[ab]{20}c", "[ab]*a[ab]{200}c", "[ab]*a[ab]{1000}[ab]{1000}[ab]{1000}c"):
            snapshot = compile_playground([flag(pattern)], {}, environment="e")
            for length in operators.TEXT_LENGTHS:
                text = "".join(chance.choices("ab", k=length))
                render_features(snapshot, evaluate(snapshot.snapshot, Context({"userId": text}), now=NOW, random=chance.random))
        """,
        megabytes=900,
        seconds=120,
    )


def test_another_strategy_decides() -> None:
    document = flag(matching(TOO_LONG))
    document["strategies"].append({"name": "default"})
    assert explained(document, "u").state is State.ON


@pytest.mark.parametrize("pattern", [TOO_LONG, TOO_LARGE, "x{1000}" * 280, "(" * 30_000 + ")" * 30_000])
def test_they_are_refused_when_stored(pattern: str) -> None:
    assert find_problem("REGEX", pattern) in ("is longer than 2,000 characters", "takes too much memory")


def test_groups_capture_nothing() -> None:
    expression = operators.compile_pattern("(a)" * 600)
    assert expression is not None
    assert expression.groups == 0
    named = "".join(f"(?P<n{n}>a)" for n in range(operators.MAX_GROUPS + 1))
    assert operators.find_fault(named) == "has more than 20 named groups"


@pytest.mark.processes
def test_the_attack_takes_no_memory() -> None:
    """30,000 groups took 18.5 GB at each evaluation, 1,200 ordinary patterns with a 200 kB value 4 GB."""
    run_limited(
        """
        import random
        from playground.engine.context import Context
        from playground.engine.evaluator import evaluate
        from playground.response.snapshot import compile_playground
        from playground.response.writer import render_features
        from tests.support.engine import NOW

        def constraint(pattern):
            return {"contextName": "userId", "operator": "REGEX", "value": pattern}

        def flag(name, pattern):
            strategies = [{"name": "default", "constraints": [constraint(pattern)]}]
            return {"name": name, "project": "p", "enabled": True, "strategies": strategies}

        ordinary = [flag(f"f{n}", rf"(user|admin)-{n}.*@(.+)[.](com|org).{{{n % 50}}}x") for n in range(1_200)]
        attack = [flag("g", "(a)" * 30_000), flag("h", "(" * 1_000 + ")" * 1_000)]
        snapshot = compile_playground(ordinary + attack, {}, environment="e")
        chance = random.Random(1)
        for length in (10, 10_000, 200_000):
            text = "".join(chance.choices("user-admin@.com123x", k=length))
            render_features(snapshot, evaluate(snapshot.snapshot, Context({"userId": text}), now=NOW, random=chance.random))
        """,
        megabytes=900,
        seconds=120,
    )
