"""Answers from the templates that other contexts left are those of flags that nobody asked for before."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.response.snapshot import compile_playground
from sdk.evaluation.prepared import Prepared
from sdk.ofrep import answers
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
    with patch.object(answers, "MAX_BYTES", -1):
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


@pytest.mark.parametrize("limit", [answers.MAX_BYTES, 1_000])
def test_templates_are_used_and_bounded(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [without_templates(NINE_FLAGS, context) for context in USERS]
    assert b'userId 7 % \\" {} is in bucket' in expected[7]
    monkeypatch.setattr(answers, "MAX_BYTES", limit)
    known = prepared(NINE_FLAGS)
    assert [all_flags(known, context) for context in USERS] == expected
    assert (known.nbytes < 2_000) is (limit == 1_000)
    if limit != 1_000:
        monkeypatch.delattr(answers.Resolver, "_write")
        assert [all_flags(known, context) for context in USERS] == expected
