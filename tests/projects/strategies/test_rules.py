"""Rules for strategies: defaults, type conversion, strategy types, segments."""

from projects.rules import Limits
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.rules import (
    StrategyDefaults,
    make_default_strategy,
    make_strategy,
    strategy_problems,
)

DEFAULTS = StrategyDefaults(flag="checkout", stickiness="userId")
KNOWN_NAMES = KnownNames(
    strategy_types=frozenset({"flexibleRollout", "default"}), segments={1: "vip", 2: "eu"}
)


def problems(**given):
    document = make_strategy({"name": "flexibleRollout", **given}, DEFAULTS)
    problems_found = strategy_problems(document, "s[3]", known_names=KNOWN_NAMES, limits=Limits())
    return [(problem.path, problem.message) for problem in problems_found]


def test_a_gradual_rollout_gets_its_defaults():
    document = make_strategy({"name": "flexibleRollout", "parameters": {"stickiness": ""}}, DEFAULTS)
    assert document["parameters"] == {"rollout": "100", "stickiness": "userId", "groupId": "checkout"}
    assert document | {"parameters": None} == {
        "name": "flexibleRollout",
        "title": None,
        "disabled": False,
        "parameters": None,
        "constraints": [],
        "variants": [],
        "segments": [],
        "sortOrder": None,
    }


def test_an_empty_rollout_does_not_become_everybody():
    for given, stored in ((None, "100"), ("", ""), (0, "0")):
        document = make_strategy({"name": "flexibleRollout", "parameters": {"rollout": given}}, DEFAULTS)
        assert document["parameters"]["rollout"] == stored


def test_parameters_become_texts():
    parameters = {"rollout": 50, "stickiness": "default", "flag": True, "nul": None}
    document = make_strategy({"name": "flexibleRollout", "parameters": parameters}, DEFAULTS)
    assert document["parameters"] == {
        "rollout": "50",
        "stickiness": "default",
        "groupId": "checkout",
        "flag": "true",
        "nul": "",
    }


def test_other_types_keep_their_parameters():
    document = make_strategy({"name": "default", "parameters": {"a": "b"}, "disabled": None}, DEFAULTS)
    assert document["parameters"] == {"a": "b"}
    assert document["disabled"] is False


def test_the_default_strategy_is_the_project_environments_or_everyone():
    assert make_default_strategy(None, DEFAULTS)["parameters"]["rollout"] == "100"
    configured = {"name": "flexibleRollout", "parameters": {"rollout": "25"}, "constraints": []}
    document = make_default_strategy(configured, DEFAULTS)
    assert document["parameters"] == {"rollout": "25", "stickiness": "userId", "groupId": "checkout"}


def test_every_problem_has_its_place():
    problems_found = problems(
        name="userWithId",
        parameters={"a": {"b": 1}},
        constraints=[{"contextName": "x", "operator": "IN"}],
        variants=[{"name": "v", "weight": 1, "weightType": "fix"}],
        segments=[1, 1, 9],
    )
    assert problems_found == [
        ("s[3].name", "strategy type userWithId not found. Available: default, flexibleRollout"),
        ("s[3].parameters.a", "must be a string, a number or a boolean"),
        ("s[3].constraints[0].values", "IN needs at least one value"),
        ("s[3].variants", 'at least one variant needs weightType "variable": it gets the rest'),
        ("s[3].segments[1]", "segment vip is listed more than once"),
        ("s[3].segments[2]", "segment 9 not found. Available: eu, vip"),
    ]


def test_at_most_five_segments():
    known_names = KnownNames(strategy_types=frozenset({"default"}), segments={i: f"s{i}" for i in range(6)})
    document = make_strategy({"name": "default", "segments": list(range(6))}, DEFAULTS)
    [problem] = strategy_problems(document, "", known_names=known_names, limits=Limits())
    assert (problem.path, problem.message) == ("segments", "must have at most 5 segments, not 6")


def test_the_vocabulary_of_a_project(shop, django_assert_num_queries):
    from projects.models import ContextField, Project, Segment

    other = Project.objects.create(id="other", name="Other")
    ours = Segment.objects.create(name="ours", project=shop)
    everyones = Segment.objects.create(name="everyones")
    Segment.objects.create(name="theirs", project=other)
    ContextField.objects.create(name="plan", legal_values=[{"value": "gold", "description": "best"}])
    ContextField.objects.create(name="their-plan", project=other, legal_values=[{"value": "tin"}])
    with django_assert_num_queries(1):
        known_names = load_known_names("shop")
    assert known_names.segments == {ours.id: "ours", everyones.id: "everyones"}
    assert known_names.legal_values == {"plan": frozenset({"gold"})}
    assert "flexibleRollout" in known_names.strategy_types
    assert known_names.tag_types == {"simple"}
