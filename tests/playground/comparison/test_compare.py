"""Comparisons: what becomes of a flag, how many change, and that an SDK agrees on both sides."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yggdrasil_engine.engine import UnleashEngine

from playground.comparison.compare import Change, Comparison, find_change
from playground.comparison.contexts import generate_contexts
from playground.comparison.results import Answer, Shares, StateResults
from playground.comparison.table import ContextTable
from playground.engine.compilation import compile_snapshot
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions
from tests.support.comparison import table_of
from tests.support.definitions import NORWAY, flag, needs, rollout, strategy
from tests.support.engine import NOW, compiled
from tests.support.examples import examples
from tests.support.generators import contexts, states

ON, OFF, UNKNOWN = (((Answer(state), Fraction(1)),) for state in (State.ON, State.OFF, State.UNKNOWN))
BLUE = ((Answer(State.ON, "blue"), Fraction(1)),)
A, B = (((Answer(State.ON, "blue", ("number", value)), Fraction(1)),) for value in ("100", "900"))
TEXT = ((Answer(State.ON, "blue", ("string", "100")), Fraction(1)),)
HALF = ((Answer(State.OFF), Fraction(1, 2)), (Answer(State.ON), Fraction(1, 2)))


def json_payload(value: str) -> Shares:
    return ((Answer(State.ON, "blue", ("json", value)), Fraction(1)),)


def random(*values: str) -> Shares:
    """Variants a, b, … at random, each with a payload."""
    each = Fraction(1, len(values))
    return tuple((Answer(State.ON, name, ("number", v)), each) for name, v in zip("ab", values, strict=True))


def twice(*values: str) -> Shares:
    """One variant with several payloads, as two strategies can give it."""
    return tuple((Answer(State.ON, "blue", ("number", v)), Fraction(1, len(values))) for v in values)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (OFF, ON, Change.OFF_TO_ON),
        (BLUE, OFF, Change.ON_TO_OFF),
        (ON, BLUE, Change.VARIANT),
        (BLUE, A, Change.PAYLOAD),
        (A, B, Change.PAYLOAD),
        (A, TEXT, Change.PAYLOAD),
        (A, A, Change.NONE),
        (B, ON, Change.VARIANT),
        (A, OFF, Change.ON_TO_OFF),
        (random("1", "2"), random("1", "3"), Change.PAYLOAD),
        (random("1", "1"), A, Change.SHARE),
        (twice("1", "2"), OFF, Change.ON_TO_OFF),
        (twice("1", "2"), twice("1", "3"), Change.PAYLOAD),
        (json_payload('{"a": [1, "x  y"]}'), json_payload('{"a":[1,"x  y"]}'), Change.NONE),
        (json_payload('{"a": "x  y"}'), json_payload('{"a": "x y"}'), Change.PAYLOAD),
        (json_payload('{"a": "\\" b"}'), json_payload('{"a": "\\"  b"}'), Change.PAYLOAD),
        (json_payload('{"a": 1, "b": 2}'), json_payload('{"b": 2, "a": 1}'), Change.PAYLOAD),
        (json_payload("1"), json_payload("1.0"), Change.PAYLOAD),
        (json_payload("1 2"), json_payload("12"), Change.PAYLOAD),
        (ON, HALF, Change.SHARE),
        (HALF, HALF, Change.NONE),
        (ON, ON, Change.NONE),
        (UNKNOWN, ON, Change.UNKNOWN),
        (UNKNOWN, UNKNOWN, Change.UNKNOWN),
    ],
)
def test_what_becomes_of_a_result(before: Any, after: Any, change: Change) -> None:
    assert find_change(before, after) is change


def snapshot_of(*flags: Any) -> Snapshot:
    return compile_snapshot(flags, {}, environment="production")


USERS = [{"userId": str(n), "properties": {"country": "NO" if n % 2 else "SE"}} for n in range(1_000)]


def test_counts_and_distribution() -> None:
    before = snapshot_of(flag(rollout("30")))
    after = snapshot_of(flag(rollout("50", NORWAY)))
    found = Comparison(before, after, table_of(USERS)).flag("f")
    counts = {change: found.count(change) for change in Change}
    assert sum(counts.values()) == len(USERS)
    assert found.changed == counts[Change.OFF_TO_ON] + counts[Change.ON_TO_OFF] > 0
    on = Answer(State.ON)
    assert found.after[on] - found.before[on] == counts[Change.OFF_TO_ON] - counts[Change.ON_TO_OFF]
    assert sum(found.before.values()) == sum(found.after.values()) == len(USERS)


def test_examples_are_the_first_of_each_change() -> None:
    before, after = snapshot_of(flag(rollout("30"))), snapshot_of(flag(rollout("50", NORWAY)))
    comparison = Comparison(before, after, table_of(USERS))
    found = comparison.flag("f")
    shown = list(comparison.examples(found, 1_000))
    assert [each.change for each in shown] == sorted((each.change for each in shown), key=list(Change).index)
    assert len(shown) == found.changed
    assert list(comparison.examples(found, 3)) == shown[:3]
    for each in shown:
        assert ("needs" in each.after.reason) == (USERS[each.position]["properties"]["country"] == "SE")
        assert find_change(each.before.shares, each.after.shares) is each.change


def test_a_flag_that_only_one_state_has() -> None:
    found = Comparison(snapshot_of(), snapshot_of(flag(strategy())), table_of(USERS)).flag("f")
    assert found.count(Change.OFF_TO_ON) == len(USERS)


def test_what_an_sdk_decides_is_unchanged_if_the_flag_is() -> None:
    custom = flag(strategy("moon"))
    table = table_of(USERS)
    same = Comparison(snapshot_of(custom), snapshot_of(custom), table).flag("f")
    assert same.count(Change.NONE) == len(USERS)
    other = flag(strategy("moon"), strategy("sun"))
    assert Comparison(snapshot_of(custom), snapshot_of(other), table).flag("f").count(Change.UNKNOWN) == len(
        USERS
    )


def test_a_parent_that_an_sdk_decides_is_a_part_of_the_flag() -> None:
    child = flag(strategy(), dependencies=[{"feature": "p"}])
    before = snapshot_of(child, flag(strategy("moon"), name="p"))
    after = snapshot_of(child, flag(strategy("sun"), name="p"))
    assert Comparison(before, after, table_of(USERS)).flag("f").count(Change.UNKNOWN) == len(USERS)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), requests=st.lists(contexts(), min_size=1, max_size=5))
def test_a_state_compared_with_itself_changes_nobody(state: Any, requests: list[Any]) -> None:
    made = generate_contexts([definitions_of(state)], now=NOW, limit=200)
    table = ContextTable([*(Context(each).at(NOW) for each in requests), *made])
    snapshot = compiled(state)
    comparison = Comparison(snapshot, snapshot, table)
    for name in comparison.names():
        assert comparison.flag(name).contexts == {Change.NONE: table.everyone}


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(before=states(), after=states(), requests=st.lists(contexts(), min_size=1, max_size=5))
def test_an_sdk_agrees_on_both_sides(before: Any, after: Any, requests: list[Any]) -> None:
    made = generate_contexts([definitions_of(before), definitions_of(after)], now=NOW, limit=50)
    table = ContextTable([*(Context(each).at(NOW) for each in requests), *made])
    for state in (before, after):
        engine = UnleashEngine()
        engine.take_state(json.dumps(state))
        results = StateResults(compiled(state), table)
        for name in results.snapshot.names:
            for shares, mask in results.results(name).items():
                if len(shares) > 1 or shares[0][0].state is State.UNKNOWN:
                    continue
                [(ours, _)] = shares
                for position in table.positions(mask):
                    sent = as_sent(table.contexts[position])
                    assert bool(engine._do_is_enabled(name, sent)) is (ours.state is State.ON), (name, sent)
                    theirs = engine._do_get_variant(name, sent)
                    assert theirs.name == (ours.variant or "disabled")
                    assert (theirs.payload and tuple(theirs.payload.values())) == ours.payload


def definitions_of(state: Any) -> Definitions:
    return Definitions(state["features"], {segment["id"]: segment for segment in state["segments"]})


def as_sent(context: Context) -> dict[str, Any]:
    """A context as an SDK sends it."""
    known = {field: text for field, text in context.values.items() if field in TOP_LEVEL}
    others = {field: text for field, text in context.values.items() if field not in TOP_LEVEL}
    return known | {"properties": others}


def test_more_conditions_than_contexts() -> None:
    constraints = [needs(f"field{n}", "IN", "x") for n in range(30)]
    strategies = [rollout("50", constraint, stickiness="random") for constraint in constraints]
    table = table_of([{"properties": {"field1": "x", "field2": "x"}}, {}])
    results = StateResults(snapshot_of(flag(*strategies)), table).results("f")
    three_quarters = ((Answer(State.OFF), Fraction(1, 4)), (Answer(State.ON), Fraction(3, 4)))
    assert results == {three_quarters: 1, OFF: 1 << 8}
