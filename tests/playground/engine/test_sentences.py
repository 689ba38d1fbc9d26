"""The explanation texts for every reason why a flag can be on, off or undecided."""

from typing import Any

import pytest

from playground.engine import sentences
from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.explanation import State, explain
from playground.engine.reasons import Reasons
from tests.support.definitions import NORWAY, SEGMENTS, flag, needs, rollout, strategy
from tests.support.engine import NOW


def evaluation_of(
    *flags: dict[str, Any], sent: dict[str, Any] | None = None, chance: float = 0.0
) -> Evaluation:
    snapshot = compile_snapshot(flags, SEGMENTS, environment="production")
    return evaluate(snapshot, Context(sent), now=NOW, random=lambda: chance)


def reason(*flags: dict[str, Any], sent: dict[str, Any] | None = None) -> str:
    """The reason of the first of these flags."""
    evaluation = evaluation_of(*flags, sent=sent)
    return Reasons(evaluation).flag(*evaluation.pair(flags[0]["name"]))


USER = {"userId": "42"}
IN_NORWAY = USER | {"country": "NO"}
AT_60 = "userId 42 is in bucket 60"
# The strategies of a flag, the context, and the reason.
REASONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "rollout after conditions": (
        [rollout("50", NORWAY, group="g2")],
        IN_NORWAY,
        f"All conditions hold, but {AT_60} and the rollout stops at 50 %",
    ),
    "per cent signs": (
        [strategy("default", needs("note", "STR_CONTAINS", "100 %s"), needs("sale", "IN", "5%"))],
        {"note": "now 100 %s", "sale": "5%"},
        "note is now 100 %s (containing 100 %s); sale is 5%",
    ),
    "rollout alone": ([rollout("50", group="g2")], USER, f"{AT_60} and the rollout stops at 50 %"),
    "inside a rollout": ([rollout("60", group="g2")], USER, f"{AT_60}, 60 % rollout"),
    "conditions and rollout hold": (
        [rollout("60", needs("country", "NOT_IN", "US"), group="g2")],
        IN_NORWAY,
        f"country is NO (not US); {AT_60}, 60 % rollout",
    ),
    "nothing to stick to": (
        [rollout("100")],
        {},
        "The rollout is by userId and the context has none, so it is off",
    ),
    "random": (
        [rollout("30", stickiness="random")],
        USER,
        "Random on each call: about 30 % of calls are on",
    ),
    "default stickiness without anybody": (
        [rollout("30", stickiness="default")],
        {},
        "Random on each call: about 30 % of calls are on",
    ),
    "random and off": (
        [strategy("gradualRolloutRandom", percentage="0")],
        {},
        "Random on each call: about 0 % of calls are on",
    ),
    "constraints": (
        [strategy("default", needs("appVersion", "SEMVER_GT", "5.0.0"), needs("country", "IN", "US", "DE"))],
        {"appVersion": "4.5.1", "country": "NO"},
        "appVersion is 4.5.1, needs a version above 5.0.0; country is NO, needs one of US, DE",
    ),
    "not given": (
        [strategy("default", needs("country", "IN", "US", "DE"))],
        {},
        "country was not given, needs one of US, DE",
    ),
    "inverted": (
        [strategy("default", needs("age", "NUM_GTE", "18", inverted=True))],
        {"age": "40"},
        "age is 40, needs anything but a number of at least 18",
    ),
    "in a segment": ([strategy("default", segments=[1])], USER, "In segment beta-testers"),
    "not in a segment": (
        [strategy("default", segments=[1])],
        {"userId": "7"},
        "Not in segment beta-testers: userId is 7, needs one of 42",
    ),
    "userIds": ([strategy("userWithId", userIds="1, 2")], USER, "userId is 42, needs one of 1, 2"),
    "IPs": (
        [strategy("remoteAddress", IPs="10.0.0.0/8")],
        {"remoteAddress": "11.0.0.1"},
        "remoteAddress is 11.0.0.1, needs an IP address in 10.0.0.0/8",
    ),
    "custom strategy": (
        [strategy("hostGroup")],
        {},
        "Uses the custom strategy hostGroup; only your SDK can evaluate it",
    ),
    "host name": (
        [strategy("applicationHostname")],
        {},
        "Depends on the host name of the application; only your SDK can evaluate it",
    ),
    "default strategy": ([strategy()], {}, "On for everyone"),
    "no strategy": ([], {}, "It has no strategy, so it is on for everyone"),
    "all disabled": ([strategy(disabled=True)], {}, "All its strategies are disabled"),
    "no percentage": ([rollout("abc")], USER, 'The rollout "abc" is not a whole number, so it is off'),
    "missing segment": (
        [strategy(segments=[7]), strategy()],
        {},
        "SDKs cannot read this flag and keep it off: segment 7 does not exist",
    ),
    "two strategies": (
        [rollout("50", group="g2"), strategy("default", NORWAY)],
        USER,
        f"Strategy 1: {AT_60} and the rollout stops at 50 %. "
        "Strategy 2: country was not given, needs one of NO",
    ),
    "many strategies": (
        [strategy("default", NORWAY)] * 4,
        {"country": "SE"},
        "Strategy 1: country is SE, needs one of NO. Strategy 2: country is SE, needs one of NO. "
        "Strategy 3: country is SE, needs one of NO … (4 strategies in all)",
    ),
    "disabled strategies are not spoken of": (
        [strategy("default", NORWAY, disabled=True), strategy("userWithId", userIds="1")],
        USER,
        "userId is 42, needs one of 1",
    ),
}


@pytest.mark.parametrize("case", REASONS)
def test_reason(case: str) -> None:
    strategies, sent, expected = REASONS[case]
    assert reason(flag(*strategies), sent=sent) == expected


def test_reason_of_a_flag_that_is_off() -> None:
    assert reason(flag(strategy(), enabled=False), sent={}) == "Switched off in production"


def child(**dependency: Any) -> dict[str, Any]:
    return flag(strategy(), dependencies=[{"feature": "checkout-redesign", **dependency}])


def parent(*strategies: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return flag(*strategies, name="checkout-redesign", **fields)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (child(), parent(rollout("10", group="g2")), "which is off here (bucket 60, rollout 10 %)"),
        (child(), parent(strategy(), enabled=False), "which is off here (switched off)"),
        (child(), parent(strategy("default", NORWAY)), "which is off here"),
        (child(enabled=False), parent(strategy()), "being off, and it is on here"),
        (child(), parent(strategy("hostGroup")), "only your SDK can tell whether it is on"),
        (child(), flag(name="other"), "which is not among these flags"),
        (
            child(),
            parent(strategy(), dependencies=[{"feature": "f"}]),
            "which depends on another flag; SDKs do not follow such chains",
        ),
    ],
)
def test_reason_of_a_parent(first: dict[str, Any], second: dict[str, Any], expected: str) -> None:
    sentence = reason(first, second, sent=USER)

    assert sentence.startswith("Depends on checkout-redesign")
    assert sentence.endswith(expected)


def test_reason_of_a_parent_with_another_variant() -> None:
    variants = [{"name": "red", "weight": 1000}]

    sentence = reason(child(variants=["blue", "green"]), parent(strategy(), variants=variants), sent=USER)

    assert sentence == "Depends on variant blue, green of checkout-redesign, which has red here"


@pytest.mark.parametrize(
    "second", [parent(strategy("hostGroup")), parent(strategy("hostGroup"), rollout("0"))]
)
def test_a_child_of_an_undecided_parent_is_undecided(second: dict[str, Any]) -> None:
    evaluation = evaluation_of(child(), second, sent=USER)

    assert explain(evaluation, "f").state is State.UNKNOWN


def test_a_child_that_is_off_anyway_is_off() -> None:
    evaluation = evaluation_of(child() | {"enabled": False}, parent(strategy("hostGroup")), sent=USER)

    assert explain(evaluation, "f").state is State.OFF


def test_long_values_are_cut_and_long_lists_too() -> None:
    long = "x" * 500
    constraint = needs("country", "IN", *(f"{number}{long}" for number in range(9)))

    sentence = reason(flag(strategy("default", constraint)), sent={"country": long})

    assert sentence.startswith(f"country is {'x' * (sentences.SHOWN_LENGTH - 1)}…, needs one of 0xxx")
    assert sentence.endswith("… (9 in all)")
    assert len(sentence) < 10 * sentences.SHOWN_LENGTH


def test_characters_that_cannot_be_seen_are_named() -> None:
    among = strategy("default", needs("plan", "IN", "vip", "pro\u2028"))
    assert (
        reason(flag(among), sent={"plan": "vip\u200b"})
        == 'plan is vip<U+200B>, needs one of vip, "pro<U+2028>"'
    )
    assert reason(flag(among), sent={"plan": "vip "}) == 'plan is "vip ", needs one of vip, "pro<U+2028>"'
    assert "<U+202E>on" in reason(flag(among), sent={"plan": "\u202eon"})


def test_an_empty_value_is_named() -> None:
    assert (
        reason(flag(strategy("default", NORWAY)), sent={"country": ""}) == "country is empty, needs one of NO"
    )


def test_explanation_of_a_flag() -> None:
    variants = [{"name": "red", "weight": 250}, {"name": "blue", "weight": 750}]
    decisive = rollout("60", NORWAY, group="g2") | {
        "variants": variants,
        "segments": [1],
        "id": "s2",
        "title": "Norway",
    }
    evaluation = evaluation_of(
        flag(strategy("default", needs("age", "NUM_GT", "5")), decisive),
        sent={"userId": "42", "country": "NO"},
    )

    explanation = explain(evaluation, "f")

    first, second = explanation.strategies
    assert (explanation.state, explanation.variant_name) == (
        State.ON,
        second.variant.name if second.variant else None,
    )
    assert (first.state, first.decides) == (State.OFF, False)
    assert first.constraints[0].sentence == "age was not given, needs a number above 5"
    assert (second.state, second.decides, second.title) == (State.ON, True, "Norway")
    assert second.constraints[0].sentence == "country is NO"
    assert second.segments[0].holds
    assert second.rollout is not None
    assert (second.rollout.bucket, second.rollout.threshold, second.rollout.field) == (60, 60, "userId")
    assert second.variant is not None
    assert [(share.first, share.last) for share in second.variant.shares] == [(1, 250), (251, 1000)]
    chosen = next(share for share in second.variant.shares if share.chosen)
    assert chosen.first <= (second.variant.place or 0) <= chosen.last


UNREADABLE: dict[str, dict[str, Any]] = {
    "a constraint has no field": {"operator": "IN", "values": ["a"]},
    'the operator "NEVER" is unknown': {"contextName": "c", "operator": "NEVER"},
    'the field name "c"" cannot be read by SDKs': {"contextName": 'c"', "operator": "IN", "values": ["a"]},
    'the field name "c\\" cannot be read by SDKs': {"contextName": "c\\", "operator": "IN", "values": ["a"]},
    "STR_CONTAINS on c has no values": {"contextName": "c", "operator": "STR_CONTAINS", "values": []},
    "IN on c has a value that ends in a backslash": {
        "contextName": "c",
        "operator": "IN",
        "values": ["b", "a\\"],
    },
    "REGEX on c ends in a backslash": {"contextName": "c", "operator": "REGEX", "value": "a\\"},
    'NUM_GT on c cannot use "many"': {"contextName": "c", "operator": "NUM_GT", "value": "many"},
}


def test_a_constraint_that_sdks_cannot_read_says_why() -> None:
    said = {
        fault: reason(flag(strategy("default", constraint)), sent={"c": "a", 'c"': "a", "c\\": "a", "": "a"})
        for fault, constraint in UNREADABLE.items()
    }

    assert said == {fault: f"SDKs cannot read this flag and keep it off: {fault}" for fault in UNREADABLE}


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"operator": "IN", "values": []}, "c is a, needs one of nothing"),
        ({"operator": "REGEX", "value": "("}, "c is a, needs a string matching ("),
        ({"operator": "REGEX", "value": "(", "inverted": True}, "c is a (not matching ()"),
    ],
    ids=["IN without values", "invalid pattern", "invalid pattern, inverted"],
)
def test_odd_constraints_that_sdks_can_read(constraint: dict[str, Any], said: str) -> None:
    assert reason(flag(strategy("default", {"contextName": "c"} | constraint)), sent={"c": "a"}) == said


def test_explanation_of_an_override() -> None:
    override = {"contextName": "userId", "values": ["42"]}
    variants = [{"name": "red", "weight": 1000}, {"name": "blue", "weight": 0, "overrides": [override]}]
    evaluation = evaluation_of(flag(strategy(), variants=variants), sent=USER)

    variant = explain(evaluation, "f").variant

    assert variant is not None
    assert (variant.name, variant.place, variant.sentence) == (
        "blue",
        None,
        "Variant blue because userId is 42",
    )


def test_chance_is_an_argument() -> None:
    definition = flag(rollout("50", stickiness="random"))

    assert explain(evaluation_of(definition, chance=0.49), "f").state is State.ON
    assert explain(evaluation_of(definition, chance=0.5), "f").state is State.OFF
