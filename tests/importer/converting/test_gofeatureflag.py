"""Files of GO Feature Flag, beside what its own evaluator gave."""

import json
from pathlib import Path
from typing import Any

import pytest

from flagadmin.core.errors import ValidationError
from importer.converting.flags import Result
from importer.converting.strategies import pick_all
from tests.importer.converting.comparing import (
    check_all_are_exact,
    convert,
    exactness_of,
    make_users,
    notes_of,
)
from tests.importer.converting.gofeatureflag_flags import DOCUMENT, FIELDS, SPLITS, flag, rule

RESULTS = json.loads(Path(__file__).with_name("gofeatureflag_results.json").read_text())


def evaluated_there(name: str, number: int) -> Any:
    values, place = list((DOCUMENT | SPLITS)[name]["variations"].values()), RESULTS[name][number]
    return None if place == "-" else values[int(place)]


def test_exact_flags_give_what_go_feature_flag_gives():
    users = make_users(FIELDS)
    numbers = {user["userId"]: number for number, user in enumerate(users)}
    check_all_are_exact(
        convert(DOCUMENT), users, lambda name, user: evaluated_there(name, numbers[user["userId"]])
    )


@pytest.mark.parametrize(("name", "field"), [("split", "userId"), ("rollout", "email")])
def test_percentages_are_hashed_as_go_feature_flag_does(name, field):
    [converted] = convert({name: SPLITS[name]}).flags
    [split] = converted.source.splits
    assert split.field == field
    here = pick_all(split, [f"user-{number}" for number in range(1000)])
    there: dict[Any, list[str]] = {}
    for number in range(1000):
        there.setdefault(evaluated_there(name, number), []).append(f"user-{number}")
    outcomes = {True: Result.ON, False: Result.OFF, "A": "a", "B": "b", "C": "c"}
    assert {outcomes[value]: members for value, members in there.items()} == here


YAML = b"""
new-checkout:
  variations: {on: true, off: false}
  targeting:
    - query: country eq "NO"
      variation: on
  defaultRule: {variation: off}
"""
TOML = b"""
[new-checkout]
variations = {on = true, off = false}
defaultRule = {variation = "off"}
[[new-checkout.targeting]]
query = 'country eq "NO"'
variation = "on"
"""


@pytest.mark.parametrize("content", [YAML, TOML])
def test_yaml_and_toml_are_read(content):
    [converted] = convert(content).flags
    assert str(converted.exactness) == "exact"
    [strategy] = converted.strategies
    assert strategy["constraints"][0]["value"] == "^(?:NO)$"


@pytest.mark.parametrize("query", ['country ne "NO"', 'not (country eq "NO")'])
def test_texts_that_must_differ_are_approximate(query):
    conversion = convert({"odd": flag(rule(query))})
    assert exactness_of(conversion) == {"odd": "approximate"}
    assert notes_of(conversion, "odd") == [
        "Texts that must not be equal are compared in any case there, and as written here."
    ]


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        (flag(rule('country gt "NO"')), "It compares the order of country with what is not a number."),
        (flag(rule("country eq 'NO'")), "A query cannot be read at 'NO'."),
        (flag(rule("not country pr")), "not stands before something that is not in parentheses."),
        (flag(rule("(country pr")), "A query ends too early."),
        (flag(rule("country pr country")), "A query cannot be read at country."),
        (flag(rule("country")), "A query ends too early."),
        (flag(rule('country xx "NO"')), "The operator xx of a query has no equivalent."),
        (flag(rule("{")), "A query is neither JSON nor one of its own language."),
        (flag(rule("(" * 60 + "country pr" + ")" * 60)), "A query is nested deeper than 50 levels."),
        (flag(default="purple"), "It names purple, which is not among its variations."),
        (flag(default={"percentage": {"on": 10, "off": 20}}), "The percentages of a rule are not 100 in all."),
        (flag(default={}), "A rule serves neither a variation nor a percentage."),
        (flag(default={"progressiveRollout": {"initial": {}}}), "It has a progressive rollout, whose percentage changes with time."),
        (flag(scheduledRollout=[{"date": "2030-01-01"}]), "It has a scheduled rollout, whose steps change the flag later."),
        (flag(experimentation={"start": "soon"}), "soon is not a date-time."),
        (flag(experimentation={"end": "9999-12-31T23:00:00-05:00"}), "9999-12-31T23:00:00-05:00 is not a time in UTC."),
        ({"variations": {"a": 1}}, "It has no default rule, which is an error there."),
    ],
)  # fmt: skip
def test_what_has_no_equal_is_said(odd, sentence):
    conversion = convert({"odd": odd})
    assert exactness_of(conversion) == {"odd": "imported off"}
    assert notes_of(conversion, "odd") == [sentence]


def test_errors_name_the_place():
    with pytest.raises(ValidationError) as caught:
        convert({"a": flag(), "b": {"variations": {}, "targeting": 5}})
    assert [problem.path for problem in caught.value.details] == ["b.variations", "b.targeting"]
