"""Rules for variants: weights, unique names, payload types."""

import pytest

from projects.strategies.rules import make_variants, variants_problems


def variant(name, weight=0, kind="variable", **fields):
    return {"name": name, "weight": weight, "weightType": kind, "stickiness": "default", **fields}


def weights(*variants):
    return [(v["name"], v["weight"]) for v in make_variants(variants)]


def problems(*given):
    return [(problem.path, problem.message) for problem in variants_problems(given, "v")]


def test_fixed_weights_may_take_everything():
    assert weights(variant("a", 1000, "fix"), variant("b", 5)) == [("a", 1000), ("b", 0)]


def test_weights_are_whole_numbers_however_they_are_written():
    """One weight of 500.0 in an answer, and SDKs read none of its flags."""
    stored = weights(variant("a", 500.0, "fix"), variant("b", 0.5))
    assert stored == [("a", 500), ("b", 500)]
    assert [type(weight) for _, weight in stored] == [int, int]


def test_optional_members_stay_away():
    stored = make_variants([{"name": "a", "weight": 5, "weightType": "variable", "payload": None}])
    assert stored == [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]


def test_no_variants_are_fine():
    assert problems() == []
    assert make_variants([]) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [("json", "{}"), ("json", "[1]"), ("number", "-1.5"), ("csv", "a,b"), ("csv", ""), ("string", "")],
)
def test_payloads_that_are_fine(kind, value):
    assert problems(variant("a", payload={"type": kind, "value": value})) == []


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("json", "{oops", "v[0].payload.value"),
        ("json", "", "v[0].payload.value"),
        ("number", "five", "v[0].payload.value"),
        ("number", "NaN", "v[0].payload.value"),
        ("xml", "<a/>", "v[0].payload.type"),
    ],
)
def test_payloads_that_are_refused(kind, value, path):
    [(at, _)] = problems(variant("a", payload={"type": kind, "value": value}))
    assert at == path


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ([variant("b"), variant("b")], "v[1].name", "variant b is listed more than once"),
        ([variant("a", 1000, "fix")], "v", 'weightType "variable"'),
        ([{"name": "only", "weight": 10}], "v", 'weightType "variable"'),
        ([variant("a", 600, "fix"), variant("b", 500, "fix"), variant("c")], "v", "add up to 1100"),
        ([variant("a", 1001)], "v[0].weight", "from 0 to 1000"),
        ([variant("a", -1)], "v[0].weight", "from 0 to 1000"),
        ([variant("a", 0.5, "fix"), variant("b")], "v[0].weight", "must be an integer"),
        ([{"name": "a", "weight": 0.5}, variant("b")], "v[0].weight", "must be an integer"),
        ([variant("")], "v[0].name", "is required"),
        ([variant("a"), variant("b", kind="odd")], "v[1].weightType", "odd is not a weight type"),
    ],
)
def test_what_is_refused(given, path, words):
    [(at, message)] = problems(*given)
    assert at == path
    assert words in message
