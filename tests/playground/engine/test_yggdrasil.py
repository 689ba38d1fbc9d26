"""The engine gives the same results as Yggdrasil, the SDKs' engine, for generated flags and contexts.

Excluded are the differences listed in docs/decisions/evaluation.md: variants whose weights are all zero
(Yggdrasil panics), variants of a parent that must be off, an empty currentTime, and regular expressions that RE2 and
Yggdrasil read differently. Random results are covered by the recorded tests.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yggdrasil_engine.engine import UnleashEngine

from tests.support.engine import compiled
from tests.support.examples import examples
from tests.support.generators import contexts, states
from tests.support.yggdrasil import certain_results, sdk_results


def one_strategy(**strategy: Any) -> dict[str, Any]:
    feature = {"name": "f", "type": "release", "enabled": True, "strategies": [strategy]}
    return {"version": 2, "features": [feature], "segments": []}


AFTER = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2022-01-29T13:00:00.000Z"}


@pytest.mark.parametrize("around", [*"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u2003\u200b\u2028\u3000\ufeff"])
def test_the_same_is_trimmed(around: str) -> None:
    for strategy, context in (
        ({"name": "userWithId", "parameters": {"userIds": f"{around}7{around}"}}, {"userId": "7"}),
        (
            {"name": "remoteAddress", "parameters": {"IPs": f"{around}10.0.0.1{around}"}},
            {"remoteAddress": "10.0.0.1"},
        ),
        ({"name": "default", "constraints": [AFTER]}, {"currentTime": f"{around}2023-01-29T13:00:00.000Z"}),
    ):
        state = one_strategy(**strategy)
        engine = UnleashEngine()
        engine.take_state(json.dumps(state))
        sent = {"appName": "app", "environment": "default", "properties": {}, **context}
        assert certain_results(compiled(state), sent) == sdk_results(engine, ["f"], sent), strategy


def has_readable_time(context: dict[str, Any]) -> bool:
    return context.get("currentTime") != ""


@pytest.mark.exhaustive
@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), requests=st.lists(contexts().filter(has_readable_time), min_size=1, max_size=5))
def test_same_results_as_an_sdk(state: dict[str, Any], requests: list[dict[str, Any]]) -> None:
    engine = UnleashEngine()
    engine.take_state(json.dumps(state))
    snapshot = compiled(state)

    for context in requests:
        ours = certain_results(snapshot, context)
        assert ours == sdk_results(engine, list(ours), context)
