"""Files of GrowthBook, beside its own SDK."""

import copy
from typing import Any

import pytest
from growthbook import GrowthBook

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
from tests.importer.converting.growthbook_features import DOCUMENT, FIELDS, feature, gate, when


def evaluate_there(document: Any = DOCUMENT) -> Any:
    kept: dict[str, GrowthBook] = {}

    def evaluate(name: str, user: Any) -> Any:
        if user["userId"] not in kept:
            attributes = {"id": user["userId"]} | {k: v for k, v in user.items() if k != "userId"}
            made = GrowthBook(
                attributes=attributes,
                features=copy.deepcopy(document["features"]),
                savedGroups=document.get("savedGroups", {}),
            )
            kept[user["userId"]] = made
        return kept[user["userId"]].eval_feature(name).value

    return evaluate


def test_exact_features_give_what_growthbook_gives():
    check_all_are_exact(convert(DOCUMENT), make_users(FIELDS), evaluate_there())


EXPERIMENT = {
    "variations": ["a", "b", "c"],
    "weights": [0.5, 0.3, 0.2],
    "coverage": 0.6,
    "key": "exp",
    "hashVersion": 2,
}


@pytest.mark.parametrize(
    "rule",
    [
        {"force": "a", "coverage": 0.3},
        {"force": "a", "coverage": 0.3, "seed": "s", "hashVersion": 2, "hashAttribute": "email"},
        EXPERIMENT,
        {**EXPERIMENT, "hashVersion": 1, "seed": "s", "coverage": None, "weights": None},
    ],
)
def test_percentages_are_hashed_as_growthbook_does(rule):
    document = {"features": {"split": feature(rule, default="z")}}
    [converted] = convert(document).flags
    [split] = converted.source.splits
    identifiers = [f"user-{number}@example.org" for number in range(1000)] + ["æøå", "😀"]
    evaluate = evaluate_there(document)
    here = {
        identifier: outcome
        for outcome, members in pick_all(split, identifiers).items()
        for identifier in members
    }
    there = {each: evaluate("split", {"userId": each, "email": each}) for each in identifiers}
    assert {each: "z" if outcome is Result.NEXT else outcome for each, outcome in here.items()} == there
    assert converted.strategies[0]["parameters"]["stickiness"] == (
        "email" if "hashAttribute" in rule else "userId"
    )


def test_those_outside_of_the_coverage_get_the_next_rule():
    [converted] = convert({"features": {"split": feature(EXPERIMENT, default="z")}}).flags
    first, second = converted.strategies
    assert first["parameters"]["rollout"] == "60"
    assert [(v["name"], v["weight"]) for v in first["variants"]] == [("a", 500), ("b", 300), ("c", 200)]
    assert [v["name"] for v in second["variants"]] == ["z"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (when({"a": {"$size": 1}}), "The operator $size has no equivalent."),
        (when({"a": {"$exists": False}}), "A constraint cannot say that a field is absent (a)."),
        (when({"a": {"b": 1}}), "It compares a with an object."),
        (when({"a": {"$gt": "x"}}), "It compares the order of a with what is not a number."),
        (when({"$where": "1"}), "The operator $where has no equivalent."),
        (when({}, namespace=["n", 0, 0.5]), "A rule has namespace, which has no equivalent."),
        ({**gate("on", True), "force": True} | {"parentConditions": [{"id": "on", "condition": {"value": True}}]}, "Only some of its rules have the prerequisite on."),
        (gate("none", True), "Its prerequisite none is not in the file."),
        (when({}, hashVersion=3, coverage=0.5), "Version 3 of its hash is not known."),
        (when({}, False, coverage=0.5), "A share of users is turned off before other rules decide."),
    ],
)  # fmt: skip
def test_what_has_no_equal_is_said(rule, sentence):
    conversion = convert({"features": {"odd": feature(rule, default=True), "on": feature(default=True)}})
    assert exactness_of(conversion)["odd"] == "imported off"
    assert notes_of(conversion, "odd") == [sentence]


def test_errors_name_the_place():
    with pytest.raises(ValidationError) as caught:
        convert({"features": {"a": feature(), "b": feature({"force": True, "coverage": "half"})}})
    assert [problem.path for problem in caught.value.details] == ["features.b.rules[0].coverage"]
