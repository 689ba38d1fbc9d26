"""Files of flagd, beside its own evaluator."""

import json
from typing import Any

import pytest
from mmh3 import hash as murmur3
from openfeature.contrib.tools.flagd.core import FlagdCore
from openfeature.evaluation_context import EvaluationContext

from flagadmin.core.errors import ValidationError
from importer.converting.strategies import pick_all
from tests.importer.converting.comparing import (
    convert,
    differences,
    evaluate_here,
    exactness_of,
    make_users,
    notes_of,
)
from tests.importer.converting.flagd_flags import DOCUMENT, FIELDS, TEXTS, flag, var


def evaluate_there(document: Any) -> Any:
    # The evaluator reads `$ref` only in text, where the daemon replaces it.
    text = json.dumps(document)
    for name, rule in document.get("$evaluators", {}).items():
        text = text.replace(json.dumps({"$ref": name}), json.dumps(rule))
    core = FlagdCore()
    core.set_flags(json.loads(text))

    def evaluate(name: str, user: Any) -> Any:
        attributes = {key: value for key, value in user.items() if key != "userId"}
        context = EvaluationContext(user["userId"], attributes)
        return core._resolve(name, None, context).value

    return evaluate


def test_exact_flags_give_what_flagd_gives():
    conversion = convert(DOCUMENT)
    assert {name for name, exactness in exactness_of(conversion).items() if exactness != "exact"} == set()
    assert differences(conversion, make_users(FIELDS), evaluate_there(DOCUMENT)) == []


def test_percentages_are_hashed_as_flagd_does():
    split = flag({"fractional": [{"cat": [var("$flagd.flagKey"), var("email")]}, ["on", 30], ["off", 70]]})
    [converted] = convert({"flags": {"rollout": split}}).flags
    [outcome] = converted.source.splits
    assert outcome.field == "email"
    identifiers = [f"{number}@example.org" for number in range(1000)]
    on = [each for each in identifiers if (murmur3("rollout" + each, 0, False) * 100) >> 32 < 30]
    assert [picked for result, picked in pick_all(outcome, identifiers).items() if result.name == "ON"] == [
        on
    ]
    assert converted.strategies[0]["parameters"] == {
        "rollout": "30",
        "stickiness": "email",
        "groupId": "rollout",
    }


@pytest.mark.parametrize("bucket", [None, {"cat": [var("$flagd.flagKey"), var("email")]}, var("email")])
def test_percentages_are_hashed_as_evaluators_do_that_hash_cbor(bucket):
    entries = [["a", 20], ["b", 30], ["c", 50]]
    split = flag({"fractional": [bucket, *entries] if bucket else entries}, variants=TEXTS, default="a")
    document = {"flags": {"split": split}}
    [converted] = convert(document, "flagd-cbor").flags
    [outcome] = converted.source.splits
    evaluate = evaluate_there(document)
    identifiers = [f"{number}{'x' * (number % 300)}" for number in range(1000)]
    here = {each: name for name, members in pick_all(outcome, identifiers).items() for each in members}
    assert here == {each: evaluate("split", {"userId": each, "email": each}).lower() for each in identifiers}


def test_weights_of_variants_are_shares_of_1000():
    split = flag({"fractional": [["a", 1], ["b", 1], ["c", 2]]}, variants=TEXTS, default="a")
    [converted] = convert({"flags": {"split": split}}).flags
    assert [(v["name"], v["weight"]) for v in converted.strategies[0]["variants"]] == [
        ("a", 250),
        ("b", 250),
        ("c", 500),
    ]
    assert str(converted.exactness) == "approximate"


def test_flags_may_be_an_array():
    conversion = convert({"flags": [{"key": "a", **flag(default="on")}]})
    assert exactness_of(conversion) == {"a": "exact"}


def test_of_an_array_with_two_flags_of_one_key_the_first_counts():
    flags = [{"key": "a", **flag(default="on")}, {"key": "a", **flag(state="DISABLED")}]
    first, second = convert({"flags": flags}).flags
    assert (str(first.exactness), first.is_enabled) == ("exact", True)
    assert (str(second.exactness), second.source.path) == ("left out", "flags[1]")
    assert [note.sentence for note in second.notes] == ["It cannot have this name here: is there twice."]


@pytest.mark.parametrize(
    ("targeting", "sentence"),
    [
        ({"if": [{"map": [[], 1]}, "on"]}, "The operator map of its targeting has no equivalent."),
        (
            {"if": [{"==": [var("a"), var("b")]}, "on"]},
            "It compares a with b: constraints compare with values.",
        ),
        ({"if": [{"==": [var("a"), None]}, "on"]}, "A constraint cannot say that a field is absent (a)."),
        (
            {"if": [{"$ref": "none"}, "on"]},
            "Its targeting refers to none, which is not among the evaluators of the file.",
        ),
        ({"if": [True, "purple"]}, "It names purple, which is not among its variants."),
        ({"if": [{"sem_ver": [var("a"), ">", "x"]}, "on"]}, "x is not a version like 1.2.3."),
        ({"a": 1, "b": 2}, "Its targeting has an object that is not one operator with its operands."),
    ],
)
def test_what_has_no_equal_is_said(targeting, sentence):
    conversion = convert({"flags": {"odd": flag(targeting)}})
    assert exactness_of(conversion) == {"odd": "imported off"}
    assert notes_of(conversion, "odd") == [sentence]
    assert evaluate_here(conversion, make_users({}, 1)) == [{"odd": "off"}]


def test_a_variable_alone_is_approximate():
    conversion = convert({"flags": {"odd": flag({"if": [var("beta"), "on"]})}})
    assert exactness_of(conversion) == {"odd": "approximate"}


def test_targeting_that_refers_to_itself_ends():
    document = {
        "flags": {"odd": flag({"if": [{"$ref": "loop"}, "on"]})},
        "$evaluators": {"loop": {"!": {"$ref": "loop"}}},
    }
    assert notes_of(convert(document), "odd") == ["Its targeting is nested deeper than 50 levels."]


def test_errors_name_the_place_and_what_is_right():
    with pytest.raises(ValidationError) as caught:
        convert({"flags": {"a": {"state": "MAYBE", "variants": {}}, "b": 5}}, "flagd")
    assert [problem.as_dict() for problem in caught.value.details] == [
        {"path": "flags.a.state", "message": "must be 'ENABLED' or 'DISABLED', not \"MAYBE\""},
        {
            "path": "flags.a.variants",
            "message": "is not valid: Dictionary should have at least 1 item after validation, not 0",
        },
        {"path": "flags.b", "message": "must be an object, not 5"},
    ]
