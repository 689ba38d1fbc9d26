"""Environment documents of Flagsmith, beside its own engine."""

from typing import Any

import pytest
from flag_engine.engine import get_evaluation_result

from flagadmin.core.errors import ValidationError
from importer.apply.execute import import_body
from importer.body.schemas import parse_body
from importer.converting.flags import Result
from importer.converting.strategies import pick_all
from projects.models import Segment
from tests.importer.converting.comparing import (
    check_all_are_exact,
    convert,
    exactness_of,
    make_users,
    notes_of,
)
from tests.importer.converting.flagsmith_environment import (
    ENVIRONMENT,
    FIELDS,
    condition,
    rule,
    segment,
    state,
)


def feature_context(each: Any) -> Any:
    options = each["multivariate_feature_state_values"]
    made = {
        "key": each["django_id"] or each["featurestate_uuid"],
        "name": each["feature"]["name"],
        "enabled": each["enabled"],
        "value": each["feature_state_value"],
        "variants": [
            {
                "value": option["multivariate_feature_option"]["value"],
                "weight": option["percentage_allocation"],
                "priority": option["id"],
            }
            for option in options
        ],
    }
    return made | ({"priority": each["feature_segment"]["priority"]} if "feature_segment" in each else {})


def rules_context(rules: Any) -> Any:
    return [
        {
            "type": each["type"],
            "rules": rules_context(each["rules"]),
            "conditions": [
                {"operator": c["operator"], "property": c["property_"], "value": c["value"]}
                for c in each["conditions"]
            ],
        }
        for each in rules
    ]


def evaluate_there(document: Any = ENVIRONMENT) -> Any:
    """As Flagsmith's SDKs make the engine's context of an environment document: an override is a segment."""
    overrides = [
        segment(
            1000 + number,
            f"identity {number}",
            rule(condition("IN", "$.identity.identifier", [identity["identifier"]])),
            states=[{**each, "feature_segment": {"priority": -1}} for each in identity["identity_features"]],
        )
        for number, identity in enumerate(document.get("identity_overrides", ()))
    ]
    segments: Any = {
        str(each["id"]): {
            "key": str(each["id"]),
            "name": each["name"],
            "rules": rules_context(each["rules"]),
            "overrides": [feature_context(own) for own in each["feature_states"]],
        }
        for each in [*document["project"]["segments"], *overrides]
    }
    features = {each["feature"]["name"]: feature_context(each) for each in document["feature_states"]}
    kept: dict[str, Any] = {}

    def evaluate(name: str, user: Any) -> Any:
        if user["userId"] not in kept:
            traits = {key: value for key, value in user.items() if key != "userId"}
            kept[user["userId"]] = get_evaluation_result(
                {
                    "environment": {"key": document["api_key"], "name": "Production"},
                    "identity": {"identifier": user["userId"], "traits": traits},
                    "segments": segments,
                    "features": features,
                }
            )["flags"]
        flag = kept[user["userId"]][name]
        if not flag["enabled"]:
            return None
        return True if flag["value"] is None else flag["value"]

    return evaluate


def test_exact_flags_give_what_flagsmith_gives():
    check_all_are_exact(convert(ENVIRONMENT), make_users(FIELDS), evaluate_there())


def with_flags(*states: Any, segments: Any = ()) -> Any:
    return {
        **ENVIRONMENT,
        "feature_states": [*states],
        "identity_overrides": [],
        "project": {"segments": [*segments]},
    }


def option(number: int, percentage: float, value: Any) -> Any:
    return {
        "id": number,
        "percentage_allocation": percentage,
        "multivariate_feature_option": {"value": value},
    }


def test_shares_of_variants_are_hashed_as_flagsmith_does():
    options = [option(2, 20.0, "b"), option(1, 30.0, "a")]
    document = with_flags(state("split", True, "control", multivariate_feature_state_values=options))
    [converted] = convert(document).flags
    [split] = converted.source.splits
    evaluate, identifiers = evaluate_there(document), [f"user-{number}" for number in range(1000)]
    here = {each: outcome for outcome, members in pick_all(split, identifiers).items() for each in members}
    assert here == {each: evaluate("split", {"userId": each}) for each in identifiers}
    weights = {variant["name"]: variant["weight"] for variant in converted.strategies[0]["variants"]}
    assert weights == {"a": 300, "b": 200, "control": 500}


@pytest.mark.parametrize("name", ["", "$.identity.identifier"])
def test_percentages_of_segments_are_hashed_as_flagsmith_does(name):
    part = segment(
        61, "part", rule(condition("PERCENTAGE_SPLIT", name, "25")), states=[state("split", True, None, 1)]
    )
    document = with_flags(state("split", False), segments=[part])
    [converted] = convert(document).flags
    [split] = converted.source.splits
    evaluate, identifiers = evaluate_there(document), [f"user-{number}" for number in range(1000)]
    there = [each for each in identifiers if evaluate("split", {"userId": each})]
    assert pick_all(split, identifiers)[Result.ON] == there
    assert converted.strategies[0]["parameters"]["rollout"] == "25"


def test_the_value_of_a_flag_that_is_off_is_said():
    conversion = convert(with_flags(state("odd", False, "x")))
    assert notes_of(conversion, "odd") == [
        "Where it is off, its value is 'x'; here, applications get their own default."
    ]


@pytest.mark.parametrize(
    ("each", "sentence"),
    [
        (condition("MODULO", "age", "2|0"), "The operator MODULO has no equivalent."),
        (condition("IS_NOT_SET", "age"), "A constraint cannot say that a field is absent (age)."),
        (
            condition("GREATER_THAN", "age", "1.5"),
            "It compares the order of age with what is not a whole number.",
        ),
        (
            condition("EQUAL", "$.environment.name", "x"),
            "A segment compares $.environment.name, which has no equivalent.",
        ),
        (
            condition("REGEX", "a", "("),
            "a is compared with '^(?:()', which is not a valid regular expression (RE2).",
        ),
    ],
)
def test_what_has_no_equal_is_said(each, sentence):
    odd = segment(1, "odd", rule(each), states=[state("odd", True, priority=1)])
    conversion = convert(with_flags(state("odd", False), segments=[odd]))
    assert exactness_of(conversion) == {"odd": "imported off"}
    assert notes_of(conversion, "odd") == [sentence]


def test_errors_name_the_place():
    with pytest.raises(ValidationError) as caught:
        convert(with_flags(state("a", "yes")))
    assert [problem.path for problem in caught.value.details] == ["feature_states[0].enabled"]


@pytest.mark.django_db
def test_segments_with_long_names_can_be_imported(shop, callers):
    long = "s" * 300
    segments = [
        segment(
            number, long, rule(condition("EQUAL", "country", country)), states=[state("a", priority=number)]
        )
        for number, country in enumerate(("NO", "SE"), 1)
    ]
    document = {"feature_states": [state("a", False)], "project": {"segments": segments}}
    body = parse_body(convert(document).dump(), project="shop", environment="production")
    import_body(body, caller=callers("admin"))
    names = Segment.objects.order_by("id").values_list("name", flat=True)
    assert list(names) == [f"{'s' * 254}…", f"{'s' * 250}… (2)"]
