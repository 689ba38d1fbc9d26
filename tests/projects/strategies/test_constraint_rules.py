"""Rules for constraints: the stored form, and what is refused."""

import pytest

from projects.rules import Limits
from projects.strategies.constraint_rules import (
    constraint_problems,
    constraints_problems,
    make_constraint,
)

LEGAL = {"plan": frozenset({"gold", "silver"})}


def problems(limits=None, **given):
    document = make_constraint({"contextName": "userId", **given})
    problems_found = constraint_problems(document, "c[0]", legal_values=LEGAL, limits=limits or Limits())
    return [(problem.path, problem.message) for problem in problems_found]


def test_values_become_texts_and_are_always_there():
    constraint = {"contextName": "userId", "operator": "NUM_GT", "value": 5, "inverted": False}
    assert make_constraint(constraint) == {
        "contextName": "userId",
        "operator": "NUM_GT",
        "value": "5",
        "values": [],
        "inverted": False,
    }
    constraint = {"contextName": "x", "operator": "IN", "values": [1, 2.0, 2.5, True], "value": None}
    assert make_constraint(constraint)["values"] == ["1", "2", "2.5", "true"]


@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        ("IN", {"values": ["a"]}),
        ("NOT_IN", {"values": ["a"], "value": "beside"}),
        ("STR_STARTS_WITH", {"values": ["a"]}),
        ("STR_ENDS_WITH", {"values": ["a"]}),
        ("STR_CONTAINS", {"values": ["a"]}),
        ("NUM_EQ", {"value": "-1.5e3"}),
        ("NUM_GTE", {"value": "5", "values": ["1", "2"]}),
        ("DATE_AFTER", {"value": "2026-11-21T09:00:00.000Z"}),
        ("DATE_BEFORE", {"value": "2026-11-21T09:00:00+01:00"}),
        ("SEMVER_EQ", {"value": "1.2.3+build.5"}),
        ("SEMVER_GTE", {"value": "1.2.3-beta.1"}),
        ("REGEX", {"value": "^a+$"}),
        ("IN_CIDR", {"values": ["10.0.0.0/8", "2001:db8::/32", "10.1.2.3"]}),
    ],
)
def test_what_each_operator_reads(operator, operand):
    assert problems(operator=operator, **operand) == []


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"operator": "NOPE", "values": ["a"]}, "c[0].operator", "NOPE is not an operator"),
        ({"operator": "IN"}, "c[0].values", "IN needs at least one value"),
        ({"operator": "IN", "values": ["a", ""]}, "c[0].values[1]", "must not be empty"),
        ({"operator": "IN", "values": ["x" * 101]}, "c[0].values[0]", "characters, not 101"),
        ({"operator": "NUM_GT", "value": "abc"}, "c[0].value", "abc is not a number"),
        ({"operator": "NUM_GT"}, "c[0].value", "NUM_GT needs a value"),
        ({"operator": "NUM_GT", "value": ""}, "c[0].value", "NUM_GT needs a value"),
        ({"operator": "SEMVER_EQ", "value": "1.2"}, "c[0].value", "1.2 is not a version"),
        ({"operator": "SEMVER_EQ", "value": "v1.2.3"}, "c[0].value", "v1.2.3 is not a version"),
        ({"operator": "DATE_AFTER", "value": "yesterday"}, "c[0].value", "yesterday is not a date"),
        ({"operator": "DATE_AFTER", "value": "2026-13-01T00:00:00Z"}, "c[0].value", "is not a date"),
        ({"operator": "REGEX", "value": "(["}, "c[0].value", "is not a valid regular expression"),
        ({"operator": "REGEX", "value": "^(?=a)b$"}, "c[0].value", "is not a valid regular expression"),
        ({"operator": "REGEX", "value": "a", "inverted": True}, "c[0].inverted", "cannot be inverted"),
        (
            {"operator": "IN_CIDR", "values": ["10.0.0.0/64"]},
            "c[0].values[0]",
            "is not an address or network",
        ),
        ({"operator": "IN", "contextName": "", "values": ["a"]}, "c[0].contextName", "is required"),
    ],
)
def test_what_is_refused(given, path, words):
    [(at, message)] = problems(**given)
    assert at == path
    assert words in message


def test_legal_values_of_several_and_of_one():
    [(path, message)] = problems(contextName="plan", operator="IN", values=["gold", "tin"])
    assert path == "c[0].values[1]"
    assert message == "tin is not a legal value of plan. Available: gold, silver"
    [(path, _)] = problems(contextName="plan", operator="NUM_GT", value="3")
    assert path == "c[0].value"


def test_parts_of_values_need_not_be_legal_values():
    assert problems(contextName="plan", operator="STR_STARTS_WITH", values=["go"]) == []


def test_limits():
    [(path, message)] = problems(Limits(constraint_values=2), operator="IN", values=["a", "b", "c"])
    assert (path, message) == ("c[0].values", "must have at most 2 values, not 3")
    constraint = make_constraint({"contextName": "userId", "operator": "IN", "values": ["a"]})
    [problem] = constraints_problems([constraint] * 31, "s.constraints", legal_values={}, limits=Limits())
    assert problem.path == "s.constraints"
    assert problem.message == "must have at most 30 constraints, not 31"


def test_every_problem_is_told():
    problems_found = problems(operator="IN", values=["", "x" * 101])
    assert [path for path, _ in problems_found] == ["c[0].values[0]", "c[0].values[1]"]


@pytest.mark.parametrize("operator", ["REGEX", "NUM_EQ", "DATE_AFTER", "SEMVER_EQ", "IN"])
def test_a_single_value_has_a_longest_length(operator):
    members = {"values": ["a"]} if operator == "IN" else {}
    problems_found = problems(operator=operator, value="1" * 2_001, **members)
    assert problems_found == [("c[0].value", "must have at most 2,000 characters, not 2,001")]


def test_a_pattern_that_takes_too_much_memory_is_refused():
    problems_found = problems(operator="REGEX", value=r"\p{L}{1,300}")
    assert problems_found == [("c[0].value", r"\p{L}{1,300} takes too much memory")]
