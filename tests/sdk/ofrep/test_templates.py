"""Answers from the templates that other contexts left are those of flags that nobody asked for before."""

import tracemalloc
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.response.snapshot import compile_playground
from sdk.evaluation.prepared import Prepared, Remembered
from sdk.ofrep import answers
from tests.support.definitions import flag, rollout
from tests.support.engine import NOW
from tests.support.examples import examples
from tests.support.generators import contexts, states
from tests.support.odd_flags import OddFlags


def prepared(state: Any) -> Prepared:
    segments = {segment["id"]: segment for segment in state.get("segments") or []}
    return Prepared(compile_playground(state["features"], segments, environment="development"), {})


def all_flags(known: Prepared, context: Any, *, browser: bool = False) -> bytes:
    return answers.render_flags(known, Context(context).at(NOW), lambda: 0.3, browser=browser)


def without_templates(state: Any, context: Any, *, browser: bool = False) -> bytes:
    no_signatures = [None] * len(state["features"])
    with patch.object(answers.Resolver, "_sign", return_value=no_signatures):
        return all_flags(prepared(state), context, browser=browser)


@settings(max_examples=examples(100), deadline=None)
@given(states(), st.lists(contexts(), min_size=2, max_size=5), st.booleans())
def test_any_flags(state: Any, asked: list[Any], browser: bool) -> None:
    known = prepared(state)
    for context in [*asked, *asked]:
        answer = all_flags(known, context, browser=browser)
        assert answer == without_templates(state, context, browser=browser)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_odd_flags(seed: int) -> None:
    odd = OddFlags(seed)
    for browser in (False, True):
        state = odd.state()
        known = prepared(state)
        for _ in range(30):
            context = odd.context()
            answer = all_flags(known, context, browser=browser)
            assert answer == without_templates(state, context, browser=browser)


ROLLOUT = {"name": "flexibleRollout", "parameters": {"rollout": "50", "groupId": "%s %d"}}
USERS = [{"userId": f'{user} % " {{}}', "properties": {"x": "y"}} for user in range(50)]


NINE_FLAGS = {"features": [{"name": f"f{n}", "enabled": True, "strategies": [ROLLOUT]} for n in range(9)]}


def test_templates_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [without_templates(NINE_FLAGS, context) for context in USERS]
    assert b'userId 7 % \\" {} is in bucket' in expected[7]
    known = prepared(NINE_FLAGS)
    assert [all_flags(known, context) for context in USERS] == expected
    monkeypatch.delattr(answers.Resolver, "_write")
    assert [all_flags(known, context) for context in USERS] == expected


def test_templates_of_all_snapshots_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured bytes, of signatures of many strategies too."""
    monkeypatch.setattr(answers, "written", Remembered(1_000_000))
    many = [rollout("50", group=str(n)) for n in range(100)]
    known = [prepared({"features": [flag(*many, name=f"f{n}") for n in range(20)]}) for _ in range(2)]
    tracemalloc.start()
    try:
        for snapshot in known:
            all_flags(snapshot, {"userId": "0"}, browser=True)  # lays it out
        begun = tracemalloc.get_traced_memory()[0]
        for user in range(1, 12):
            for snapshot in known:
                all_flags(snapshot, {"userId": str(user)}, browser=True)
        assert tracemalloc.get_traced_memory()[0] - begun < 1_200_000
    finally:
        tracemalloc.stop()
