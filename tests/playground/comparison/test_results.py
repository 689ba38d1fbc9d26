"""The results over many contexts are those of the engine for each of them."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.comparison.results import Answer
from playground.engine.compilation import compile_snapshot
from playground.engine.outcomes import State
from tests.support.cases import CaseFile, case_files
from tests.support.comparison import answers, drawn_shares, shares_of, table_of
from tests.support.definitions import flag, needs, rollout, strategy
from tests.support.engine import compiled
from tests.support.examples import examples
from tests.support.for_each import for_each
from tests.support.generators import contexts, states


@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.name)
def test_same_as_the_engine_in_every_case(file: CaseFile) -> None:
    snapshot = compiled(file.state)
    table = table_of(case.context for case in file.cases)
    for name in {case.flag for case in file.cases}:
        results = shares_of(snapshot, table, name)
        for case, shares in zip(file.cases, results, strict=True):
            if case.flag != name:
                continue
            if name not in snapshot.positions:
                assert shares == ((Answer(State.OFF), 1),)
                continue
            assert answers(snapshot, case.context, name) <= {given for given, _ in shares}
            if len(shares) == 1 and case.enabled is not None:
                assert (shares[0][0].state is State.ON) is case.enabled
            assert sum(share for _, share in shares) == 1


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(state=states(), requests=st.lists(contexts(), max_size=12))
def test_same_as_the_engine_for_any_flags(state: dict[str, Any], requests: list[dict[str, Any]]) -> None:
    snapshot, table = compiled(state), table_of(requests)
    for each in snapshot.flags:
        results = shares_of(snapshot, table, each.name)
        for context, shares in zip(requests, results, strict=True):
            found = answers(snapshot, context, each.name, calls=1 if len(shares) == 1 else 20)
            assert found <= {given for given, _ in shares}
            assert len(shares) > 1 or found == {shares[0][0]}
            assert sum(share for _, share in shares) == 1
            assert all(share > 0 for _, share in shares)


BLUE_GREEN = [{"name": "blue", "weight": 3}, {"name": "green", "weight": 1}]
CUSTOM = strategy("custom")
NO = needs("country", "IN", "NO")


@for_each(
    ("flags", "sizes"),
    [
        ([flag(rollout("30", stickiness="default"))], [100]),
        ([flag(rollout("30", stickiness="random"), rollout("50", stickiness="default"))], [100, 100]),
        ([flag(rollout("30", stickiness="random"), CUSTOM)], [100]),
        ([flag(CUSTOM, rollout("30", stickiness="random"))], [100]),
        ([flag(rollout("30", NO, stickiness="default"), strategy(), variants=BLUE_GREEN)], [100, 4]),
        ([flag(rollout("30", stickiness="random") | {"variants": BLUE_GREEN})], [100, 4]),
        ([flag(variants=BLUE_GREEN)], [4]),
        ([flag(dependencies=[{"feature": "p"}]), flag(rollout("30", stickiness="random"), name="p")], [100]),
        (
            [
                flag(rollout("50", stickiness="random"), dependencies=[{"feature": "p", "enabled": False}]),
                flag(rollout("30", stickiness="random"), name="p"),
            ],
            [100, 100],
        ),
        (
            [
                flag(dependencies=[{"feature": "p", "variants": ["blue"]}, {"feature": "p"}]),
                flag(name="p", variants=BLUE_GREEN),
            ],
            [4],
        ),
    ],
)
def test_shares_are_those_of_all_that_can_be_drawn(flags: list[Any], sizes: list[int]) -> None:
    snapshot = compile_snapshot(flags, {}, environment="production")
    for context in ({}, {"properties": {"country": "NO"}}):
        [shares] = shares_of(snapshot, table_of([context]), "f")
        assert dict(shares) == drawn_shares(snapshot, context, "f", sizes)


def test_a_share_is_exact() -> None:
    snapshot = compile_snapshot([flag(rollout("30", stickiness="random"), CUSTOM)], {}, environment="e")
    [shares] = shares_of(snapshot, table_of([{}]), "f")
    assert shares == ((Answer(State.ON), Fraction(3, 10)), (Answer(State.UNKNOWN), Fraction(7, 10)))


def test_more_distinct_values_than_a_byte_holds() -> None:
    snapshot = compile_snapshot([flag(rollout("50"), strategy("default", NO))], {}, environment="e")
    requests = [{"userId": str(n), "properties": {"country": f"C{n}" if n % 7 else "NO"}} for n in range(600)]
    results = shares_of(snapshot, table_of(requests), "f")
    for context, shares in zip(requests, results, strict=True):
        assert answers(snapshot, context, "f", calls=1) == {shares[0][0]}


def test_no_contexts() -> None:
    snapshot = compile_snapshot([flag(rollout("50"))], {}, environment="e")
    assert shares_of(snapshot, table_of([]), "f") == []
