"""The engine against Yggdrasil, the engine inside today's SDKs, over generated flags and contexts.

Left out are the places where README.md of the engine says that we part: a list of variants without any
weight (Yggdrasil panics), variants asked of a parent that has to be off, regular expressions on which RE2 and
Yggdrasil's dialect differ. Results that depend on chance are compared by the recordings of the specification.
"""

import json
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.engine.context import Context
from playground.engine.dependencies import Problem
from playground.engine.evaluator import FlagOutcome, evaluate
from playground.engine.snapshot import Snapshot
from tests.engine.generators import contexts, states
from tests.engine.oracle import compiled, results

yggdrasil = pytest.importorskip("yggdrasil_engine.engine")


def sdk_results(engine: Any, names: list[str], context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        name: (engine._do_is_enabled(name, context), engine._do_get_variant(name, context).name)
        for name in names
    }


def certain_results(snapshot: Snapshot, context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """Our results, without those that chance decides (its extremes give different ones) and those that
    only an application can tell, because it knows its host name and its custom strategies."""
    now = datetime.now(UTC)
    low, high = (
        evaluate(snapshot, Context(context), now=now, random=repeat(number).__next__)
        for number in (0.0, 0.999999)
    )
    names = [flag.name for flag, outcome in low.pairs() if not depends_on_unknown(outcome)]
    others = results(high, names)
    return {name: result for name, result in results(low, names).items() if others[name] == result}


def depends_on_unknown(outcome: FlagOutcome) -> bool:
    return any(unmet.problem is Problem.UNKNOWN for unmet in outcome.unmet)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), requests=st.lists(contexts(), min_size=1, max_size=5))
def test_same_results_as_an_sdk(state: dict[str, Any], requests: list[dict[str, Any]]) -> None:
    engine = yggdrasil.UnleashEngine()
    engine.take_state(json.dumps(state))
    snapshot = compiled(state)

    for context in requests:
        ours = certain_results(snapshot, context)
        assert ours == sdk_results(engine, list(ours), context)
