"""The engine gives the same results as Yggdrasil, the SDKs' engine, for generated flags and contexts.

Excluded are the differences listed in docs/decisions/evaluation.md: variants whose weights are all zero
(Yggdrasil panics), variants of a parent that must be off, an empty currentTime, and regular expressions that RE2 and
Yggdrasil read differently. Random results are covered by the recorded tests.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yggdrasil_engine.engine import UnleashEngine

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import FlagOutcome, ParentProblem
from playground.engine.snapshot import Snapshot
from tests.support.engine import compiled, results
from tests.support.examples import examples
from tests.support.generators import contexts, states


def sdk_results(engine: Any, names: list[str], context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        name: (engine._do_is_enabled(name, context), engine._do_get_variant(name, context).name)
        for name in names
    }


class Chance:
    """A source of randomness that always gives one number, and knows whether it was asked."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.asked = False

    def __call__(self) -> float:
        self.asked = True
        return self.number


def certain_results(snapshot: Snapshot, context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """Our results, without those that chance decides and those that only an application can tell, because
    it knows its host name and its custom strategies."""
    found = {}
    for flag in snapshot.flags:
        result = certain_result(snapshot.only(flag.name), flag, context)
        if result is not None:
            found[flag.name] = result
    return found


def certain_result(
    snapshot: Snapshot, flag: CompiledFlag, context: dict[str, Any]
) -> tuple[bool, str] | None:
    """The result of a flag; None where chance decides: it was asked, and its extremes do not settle it."""
    low, high = Chance(0.0), Chance(0.999999)
    now = datetime.now(UTC)
    first, second = (evaluate(snapshot, Context(context), now=now, random=chance) for chance in (low, high))
    if depends_on_unknown(first.pair(flag.name)[1]):
        return None
    outcomes = [results(evaluation, [flag.name])[flag.name] for evaluation in (first, second)]
    settled = len(flag.strategies) <= 1 and not flag.parents and outcomes[0] == outcomes[1]
    return outcomes[0] if settled or not low.asked else None


def depends_on_unknown(outcome: FlagOutcome) -> bool:
    return any(unmet.problem is ParentProblem.UNKNOWN for unmet in outcome.unmet)


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
