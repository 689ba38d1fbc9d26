"""Generated contexts meet and miss every rule, and are the same every time."""

from collections import defaultdict
from itertools import combinations
from typing import Any

import pytest

from playground.comparison.contexts import MAX_VALUES, generate_contexts
from playground.comparison.rules import find_matching_text, read_rules
from playground.comparison.users import make_users
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.hashing import ROLLOUT_SEED, compute_hashes
from playground.engine.outcomes import VERDICT
from playground.engine.strategies import CompiledStrategy, Mode
from projects.definitions import Definitions
from tests.support.cases import CaseFile, case_files
from tests.support.definitions import NORWAY, SEGMENTS, flag, needs, rollout, strategy
from tests.support.engine import NOW, compiled


def documents_of(file: CaseFile, name: str) -> Definitions:
    """A flag with its parents and all segments."""
    flags = {feature["name"]: feature for feature in file.state["features"]}
    names = [name, *(parent["feature"] for parent in flags[name].get("dependencies", ()))]
    segments = {segment["id"]: segment for segment in file.state["segments"]}
    return Definitions([flags[each] for each in dict.fromkeys(names) if each in flags], segments)


UNREADABLE = ("10.0.0.0/33", "(open", "^(?=a)a$", r"^(x)\1$", "v2.0.0")


def one_sided(constraint: dict[str, Any]) -> bool:
    """Whether no value can meet and miss it: it has no values, or none that can be read."""
    values = [value for value in [*(constraint.get("values") or ()), constraint.get("value")] if value]
    return not values or values[0] in UNREADABLE


@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.name)
def test_every_constraint_and_strategy_holds_and_fails(file: CaseFile) -> None:
    snapshot = compiled(file.state)
    for document in file.state["features"]:
        contexts = generate_contexts([documents_of(file, document["name"])], now=NOW, limit=1_000)
        only = snapshot.only(document["name"])
        held: dict[tuple[int, ...], set[object]] = defaultdict(set)
        for context in contexts:
            flag, outcome = evaluate(only, context, now=NOW, random=lambda: 0.5).pair(document["name"])
            for index, (compiled_one, found) in enumerate(
                zip(flag.strategies, outcome.strategies, strict=True)
            ):
                held[(index,)].add(found[VERDICT])
                for place in range(len(compiled_one.constraints)):
                    held[index, place].add(bool(found[1] >> place & 1))
        flag = only.flags[only.positions[document["name"]]]
        for index, each in enumerate(flag.strategies):
            stored = document["strategies"][index].get("constraints") or []
            for place, given in enumerate(stored):
                if each.constraints[place].fault is None and not one_sided(given):
                    assert held[index, place] >= {True, False}, (document["name"], given)
            if varies(each) and not any(map(one_sided, stored)):
                assert len(held[(index,)]) > 1, (document["name"], index)


def varies(each: CompiledStrategy) -> bool:
    """Whether a strategy is on for some and off for others."""
    if each.mode is not Mode.OPEN or each.fault is not None or each.all_hold < 0:
        return False
    if each.rollout is not None and not each.rollout.threshold:
        return False
    divided = each.rollout is not None and each.rollout.threshold < 100 and each.rollout.key
    return bool(each.constraints or divided)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^a[0-9]+$", "a0"),
        ("(?i)^no|yes", "no"),
        ("(?P<year>[0-9]{4})-x", "0000-x"),
        ("[^a~]b?.{2,}", "0baa"),
        (r"\bdog\.\d*?", "dog.0"),
        ("(?:gold|go)", "gold"),
        ("a{,3}", "a"),
        ("[[:upper:][:digit:]]x", "Ax"),
        ("(", ""),
        ("[", ""),
        ("(" * 3_000, ""),
        ("a{900}" * 3, "a" * 1_000),
        ("", ""),
    ],
)
def test_strings_that_match(pattern: str, text: str) -> None:
    assert find_matching_text(pattern) == text


def test_every_variant_is_reached() -> None:
    variants = [{"name": name, "weight": weight} for name, weight in (("a", 1), ("b", 90), ("c", 9))]
    overrides = [{"contextName": "country", "values": ["NO"]}]
    documents = [flag(variants=[*variants, {"name": "d", "weight": 0, "overrides": overrides}])]
    snapshot = compiled({"features": documents})
    found = set()
    for context in generate_contexts([Definitions(documents, {})], now=NOW, limit=100):
        evaluation = evaluate(snapshot, context, now=NOW, random=lambda: 0.0)
        found.add(evaluation.variant(*evaluation.pair("f")))
    assert found == {"a", "b", "c", "d"}


def test_every_pair_of_values_of_two_fields() -> None:
    constraints = [needs(f"field{n}", "IN", *(f"{n}-{v}" for v in range(n + 2))) for n in range(6)]
    state = Definitions([flag(strategy("default", *constraints))], {})
    contexts = [context.values for context in generate_contexts([state], now=NOW, limit=1_000)]
    for one, other in combinations(constraints, 2):
        for first in (*one["values"], None):
            for second in (*other["values"], None):
                fields = one["contextName"], other["contextName"]
                pairs = [(context.get(fields[0]), context.get(fields[1])) for context in contexts]
                assert (first, second) in pairs


def test_many_values_stay_within_the_limit() -> None:
    state = Definitions([flag(strategy("default", needs("country", "IN", *map(str, range(400)))))], {})
    contexts = generate_contexts([state], now=NOW, limit=300)
    assert len(contexts) == 300
    assert MAX_VALUES < 300


def test_a_child_passes_with_its_parent() -> None:
    parent = flag(rollout("10", NORWAY), name="p")
    child = flag(rollout("20", needs("plan", "IN", "pro"), group="other"), dependencies=[{"feature": "p"}])
    snapshot = compiled({"features": [child, parent]})
    contexts = generate_contexts([Definitions([child, parent], {})], now=NOW, limit=100)
    assert any(evaluate(snapshot, each, now=NOW, random=lambda: 0.5).pair("f")[1].on for each in contexts)


def test_segments_are_met_and_missed() -> None:
    document = flag(strategy(segments=[1]))
    state = {"features": [document], "segments": list(SEGMENTS.values())}
    found = {
        evaluate(compiled(state), each, now=NOW, random=lambda: 0.5).pair("f")[1].on
        for each in generate_contexts([Definitions([document], SEGMENTS)], now=NOW, limit=100)
    }
    assert found == {True, False}


def test_synthetic_users_have_ids_of_their_own_and_named_values() -> None:
    state = Definitions([flag(rollout("50", NORWAY, stickiness="tenant"))], {})
    contexts = [each.values for each in make_users([state], now=NOW, count=1_000)]
    assert len({context["userId"] for context in contexts}) == 1_000
    assert len({context["tenant"] for context in contexts}) > 800
    assert {context.get("country") for context in contexts} == {"NO", "other", None}
    again = [each.values for each in make_users([state], now=NOW, count=1_000)]
    assert contexts == again
    assert contexts != [each.values for each in make_users([state], now=NOW, count=1_000, seed=1)]


def test_of_synthetic_users_as_many_are_on_as_the_rollout_says() -> None:
    listed = needs("userId", "IN", "ada", "ben")
    state = Definitions([flag(rollout("10", stickiness="default"), strategy("default", listed))], {})
    users = [each.values["userId"] for each in make_users([state], now=NOW, count=10_000)]
    inside = [
        n for n in compute_hashes(b"f:", (user.encode() for user in users), ROLLOUT_SEED) if n % 100 < 10
    ]
    assert len(set(users)) == 10_000
    assert {"ada", "ben"} < set(users)
    assert 900 < len(inside) < 1_100


def test_odd_documents_have_no_rules_that_raise() -> None:
    odd = {"name": "f", "strategies": [None, {"constraints": [None, {"operator": 5, "values": [None]}]}, 7]}
    assert len(read_rules(odd, {})) == 3


def test_an_empty_time_is_none() -> None:
    state = Definitions([flag(strategy("default", needs("currentTime", "IN", "")))], {})
    for made in (generate_contexts([state], now=NOW, limit=20), make_users([state], now=NOW, count=20)):
        assert all(context.values["currentTime"] for context in made)


def test_contexts_are_those_of_requests_with_the_same_fields() -> None:
    state = Definitions([flag(rollout("50", NORWAY, needs("environment", "IN", "x")))], {})
    for context in [*generate_contexts([state], now=NOW, limit=50), *make_users([state], now=NOW, count=50)]:
        assert Context(context.fields).at(NOW).values == context.values
