"""Whatever flags and contexts are like, the answers keep what they promise."""

import json
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response.snapshot import ResponseSnapshot, compile_playground
from sdk.evaluation.prepared import Prepared
from sdk.ofrep import answers
from sdk.ofrep.answers import FlagNotFound, describe_failure
from tests.support.engine import NOW
from tests.support.examples import examples
from tests.support.generators import contexts, states

pytestmark = pytest.mark.exhaustive


def drawn() -> float:
    return 0.3


def compiled(state: Any) -> ResponseSnapshot:
    segments = {segment["id"]: segment for segment in state.get("segments") or []}
    return compile_playground(state["features"], segments, environment="development")


def all_flags(snapshot: ResponseSnapshot, context: Any, *, browser: bool = False) -> dict[str, Any]:
    prepared = Prepared(snapshot, {})
    answer = answers.render_flags(prepared, Context(context).at(NOW), drawn, browser=browser)
    return {flag["key"]: flag for flag in json.loads(answer)["flags"]}


def told(answer: dict[str, Any]) -> tuple[Any, ...]:
    return answer["value"], answer["variant"], answer["reason"]


def one_flag(snapshot: ResponseSnapshot, name: str, context: Any) -> dict[str, Any]:
    try:
        prepared = Prepared(snapshot, {})
        return json.loads(answers.render_flag(prepared, name, Context(context).at(NOW), drawn, browser=False))
    except answers.ValidationError as error:
        return describe_failure(error, name)


def give_payloads(state: Any, payloads: list[Any]) -> None:
    """Gives the variants these payloads, in turn; None is none."""
    turns = cycle(payloads)
    for flag in state["features"]:
        for holder in (flag, *flag["strategies"]):
            for variant in holder.get("variants") or ():
                variant["payload"] = next(turns)


PAYLOADS = st.sampled_from(
    [
        None,
        *(
            {"type": kind, "value": text}
            for kind in ("string", "json", "number")
            for text in ("1.50", "{}", "x", "")
        ),
    ]
)


@settings(max_examples=examples(200), deadline=None)
@given(states(), st.lists(PAYLOADS, min_size=1, max_size=3), contexts(), contexts())
def test_any_flag_gets_a_consistent_answer(state: Any, payloads: list[Any], context: Any, other: Any) -> None:
    give_payloads(state, payloads)
    snapshot = compiled(state)
    found, elsewhere = all_flags(snapshot, context), all_flags(snapshot, other)
    evaluation = evaluate(snapshot.snapshot, Context(context), now=NOW, random=drawn)
    assert list(found) == snapshot.snapshot.names
    for (flag, outcome), fragments in zip(evaluation.pairs(), snapshot.flags, strict=True):
        answer = found[flag.name]
        assert one_flag(snapshot, flag.name, context) == answer
        if "errorCode" in answer:
            assert answer["errorCode"] in ("TARGETING_KEY_MISSING", "PARSE_ERROR")
            assert not outcome.on or fragments.has_payloads
            continue
        name = evaluation.variant(flag, outcome)
        assert answer["variant"] == ("enabled" if outcome.on else "disabled") if name is None else name
        if not (outcome.on and fragments.has_payloads):
            assert answer["value"] is outcome.on
        if answer["reason"] == "STATIC":
            assert told(elsewhere[flag.name]) == told(answer)


@settings(max_examples=examples(100), deadline=None)
@given(states(), contexts())
def test_browsers_get_the_same_with_fewer_words(state: Any, context: Any) -> None:
    snapshot = compiled(state)
    backend, browser = (all_flags(snapshot, context, browser=browser) for browser in (False, True))
    for answer in (*backend.values(), *browser.values()):
        if "metadata" in answer:
            assert answer["metadata"].pop("why")
    assert backend == browser


@given(st.text(min_size=1))
@settings(max_examples=examples(30), deadline=None)
def test_an_unknown_flag_is_not_found(name: str) -> None:
    with pytest.raises(FlagNotFound):
        one_flag(compiled({"features": []}), name, {})
