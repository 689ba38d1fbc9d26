"""The engine's operators match the reference's recorded truth tables (1,092 constraints, up to 47 values
each).

The reference reads numbers, versions, dates and blank strings as JavaScript does. Where the engine differs
from the recording, it agrees with the SDKs.
"""

import json
from collections import Counter
from typing import Any

import pytest
from yggdrasil_engine.engine import UnleashEngine

from playground.engine.operators import OPERATORS, find_problem
from tests.support.engine import compiled, evaluated, is_enabled
from tests.support.vectors import load

MISSING = "<missing>"
NO_OPERATORS = {"", "in", "NOT_A_VALID_OPERATOR"}
TIMES_FIELD = "currentTime"


def state(constraint: dict[str, Any]) -> dict[str, Any]:
    strategy = {"name": "default", "parameters": {}, "constraints": [constraint]}
    flag = {"name": "f", "type": "release", "enabled": True, "strategies": [strategy]}
    return {"version": 2, "features": [flag]}


def context(kind: str, value: str) -> dict[str, Any]:
    if value == MISSING:
        return {}
    return {TIMES_FIELD: value} if kind == "date" else {"properties": {"foo": value}}


def test_ours_is_recorded_or_what_an_sdk_gives() -> None:
    engine = UnleashEngine()
    different: list[Any] = []
    equal: Counter[str] = Counter()
    table = load("operators")
    for kind, constraint, results in table["rows"]:
        if not isinstance(constraint.get("value", ""), str):
            continue  # SDKs cannot load it at all; test_odd_data.py has such values
        snapshot = compiled(state(constraint))
        engine.take_state(json.dumps(state(constraint)))
        for value, result in zip(table["values"][kind], results, strict=True):
            sent, expected = context(kind, value), result == "1"
            ours = is_enabled(evaluated(snapshot, sent), "f")
            equal[constraint["operator"]] += ours is expected
            if ours is not expected and engine._do_is_enabled("f", sent) is not ours:
                different.append((constraint, value, expected, ours))

    assert different == []
    assert set(OPERATORS) == set(equal) - NO_OPERATORS
    assert len(table["rows"]) == 1092


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("NUM_EQ", "5"),
        ("NUM_GT", "-0.5"),
        ("NUM_LT", "1e3"),
        ("DATE_AFTER", "2022-01-29T13:00:00.000Z"),
        ("DATE_BEFORE", "2022-01-29T13:00:00+02:00"),
        ("SEMVER_EQ", "1.2.3-alpha.1+build"),
        ("REGEX", "^(a|b)+$"),
        ("IN_CIDR", "10.0.0.0/8"),
        ("IN_CIDR", "2001:db8::/32"),
        ("IN", "anything"),
        ("STR_CONTAINS", ""),
    ],
)
def test_a_good_value_has_no_problem(operator: str, value: str) -> None:
    assert find_problem(operator, value) is None


@pytest.mark.parametrize(
    ("operator", "value", "said"),
    [
        ("NUM_EQ", "five", "number"),
        ("NUM_EQ", ".5", "number"),
        ("NUM_EQ", "Infinity", "number"),
        ("DATE_AFTER", "2022-01-29", "date"),
        ("DATE_AFTER", "2022-02-30T00:00:00Z", "date"),
        ("SEMVER_GT", "v1.2.3", "version"),
        ("SEMVER_GT", "1.2", "version"),
        ("REGEX", "(?=a)", "regular expression"),
        ("REGEX", "[", "regular expression"),
        ("IN_CIDR", "10.0.0.0/33", "network"),
        ("NOSUCH", "5", "NOSUCH"),
        ("NUM_EQ", 5, "string"),
        ("IN", None, "string"),
    ],
)
def test_a_bad_value_is_told_in_words(operator: str, value: object, said: str) -> None:
    assert said in (find_problem(operator, value) or "")
