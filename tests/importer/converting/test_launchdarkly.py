"""Files of LaunchDarkly, beside its own SDK."""

import json
from typing import Any

import ldclient
import pytest
from ldclient.config import Config
from ldclient.integrations import Files

from flagadmin.core.errors import ValidationError
from importer.converting.convert import Missing
from importer.converting.flags import Result
from importer.converting.rollouts import pick_all
from tests.importer.converting.comparing import convert, differences, exactness_of, make_users, notes_of

BOOLEAN = [True, False]
TEXTS = ["A", "B", "C"]
FIELDS = {
    "country": ["NO", "SE", "DE", None],
    "plan": ["free", "pro", "enterprise", None],
    "email": ["ada@example.org", "bob@example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0-alpha", "2.0.0", "2.1.7", None],
    "beta": [True, False, None],
    "born": ["2000-01-01T00:00:00Z", "2010-06-01T12:00:00+02:00", None],
    "org.key": ["org-1", "org-2", None],
    "org.tier": ["gold", "silver", None],
}


def clause(attribute: str, op: str, *values: Any, **more: Any) -> Any:
    return {"attribute": attribute, "op": op, "values": [*values], **more}


def rule(variation: Any, *clauses: Any, **more: Any) -> Any:
    return {"id": "r", "variation": variation, "clauses": [*clauses], **more}


def flag(
    *rules: Any, variations: Any = BOOLEAN, fallthrough: Any = 1, off: Any = 1, on: bool = True, **more: Any
) -> Any:
    served = {"variation": fallthrough} if isinstance(fallthrough, int) else {"rollout": fallthrough}
    return {
        "on": on, "variations": variations, "fallthrough": served, "offVariation": off, "salt": "salty", "rules": [*rules],
        "targets": [], "contextTargets": [], "prerequisites": [], **more,
    }  # fmt: skip


def matching(key: str, **more: Any) -> Any:
    return clause("", "segmentMatch", key, **more)


FLAGS = {
    "on": flag(fallthrough=0),
    "off": flag(on=False),
    "off-without-variation": flag(variations=TEXTS, on=False, off=None),
    "texts": flag(rule(0, clause("country", "in", "NO", "SE")), rule(1, clause("plan", "in", "pro")), variations=TEXTS, fallthrough=2, off=None),
    "not-in": flag(rule(0, clause("country", "in", "NO", negate=True))),
    "turned-off-first": flag(rule(1, clause("country", "in", "DE")), rule(0, clause("plan", "in", "pro", "free")), fallthrough=1),
    "turned-off-two": flag(rule(1, clause("country", "in", "DE"), clause("plan", "in", "pro")), rule(1, clause("age", "lessThan", 18)), fallthrough=0),
    "targets": flag(targets=[{"values": ["user-1", "user-5"], "variation": 0}, {"values": ["user-2"], "variation": 1}], fallthrough=1),
    "context-targets": flag(
        variations=TEXTS, fallthrough=2, off=None, targets=[{"values": ["user-1", "user-5"], "variation": 0}],
        contextTargets=[{"contextKind": "org", "values": ["org-1"], "variation": 1}, {"contextKind": "user", "values": [], "variation": 0}],
    ),
    "kinds": flag(rule(0, clause("tier", "in", "gold", contextKind="org"), clause("key", "in", "org-1", contextKind="org"))),
    "not-of-kind": flag(rule(0, clause("tier", "in", "gold", contextKind="org", negate=True))),
    "not-user": flag(rule(0, clause("key", "in", "user-1", negate=True))),
    "mail": flag(rule(0, clause("email", "endsWith", "@example.org")), rule(0, clause("email", "startsWith", "bob", "zoe"))),
    "contains": flag(rule(0, clause("email", "contains", "@example.c"))),
    "matches": flag(rule(0, clause("email", "matches", "^(ada|bob)@", "^x"))),
    "numbers": flag(rule(0, clause("age", "lessThanOrEqual", 5)), rule(0, clause("age", "greaterThan", 18.5))),
    "number-in": flag(rule(0, clause("age", "in", 18, 65))),
    "true": flag(rule(0, clause("beta", "in", True))),
    "not-number": flag(rule(0, clause("age", "greaterThanOrEqual", 18, negate=True))),
    "before": flag(rule(0, clause("born", "before", "2005-01-01T00:00:00Z"))),
    "after": flag(rule(0, clause("born", "after", 1275386400000))),
    "versions": flag(rule(0, clause("version", "semVerGreaterThan", "1.2.4")), rule(0, clause("version", "semVerEqual", "1.2.3"))),
    "old-version": flag(rule(0, clause("version", "semVerLessThan", "2"))),
    "in-segment": flag(rule(0, matching("beta-users"))),
    "not-in-segment": flag(rule(0, matching("simple", negate=True))),
    "excluded": flag(rule(1, matching("beta-users")), fallthrough=0),
    "two-segments": flag(rule(0, clause("", "segmentMatch", "simple", "nested"))),
    "parent": flag(rule(0, clause("country", "in", "NO", "DE"))),
    "child": flag(fallthrough=0, prerequisites=[{"key": "parent", "variation": 0}]),
    "child-of-off": flag(fallthrough=0, prerequisites=[{"key": "parent", "variation": 1}]),
    "child-of-text": flag(fallthrough=0, prerequisites=[{"key": "texts", "variation": 1}]),
    "all-of-it": flag(fallthrough={"variations": [{"variation": 0, "weight": 100000}, {"variation": 1, "weight": 0}]}),
    "objects": flag(rule(0, clause("country", "in", "NO")), variations=[{"a": 1}, [1, 2.5]], off=None),
    "numbers-served": flag(rule(0, clause("country", "in", "NO")), variations=[7, 1.5], off=None),
}  # fmt: skip
SEGMENTS = {
    "simple": {"rules": [{"clauses": [clause("plan", "in", "pro")]}]},
    "nested": {"rules": [{"clauses": [matching("simple"), clause("country", "in", "SE")]}]},
    "beta-users": {
        "included": ["user-3", "user-4"], "excluded": ["user-7"], "includedContexts": [{"contextKind": "org", "values": ["org-2"]}],
        "rules": [{"clauses": [clause("country", "in", "NO")]}, {"clauses": [clause("age", "greaterThan", 18), clause("plan", "in", "pro")]}],
    },
}  # fmt: skip
ROLLOUT = {"variations": [{"variation": 0, "weight": 30000}, {"variation": 1, "weight": 70000}]}
DOCUMENT = {
    "flags": FLAGS,
    "segments": SEGMENTS,
    "flagValues": {"simple-value": "hello", "simple-flag": True},
}


def listed(flags: Any = FLAGS, segments: Any = SEGMENTS, environments: Any = ("production",)) -> Any:
    """The same as the REST API lists it."""
    items = []
    for key, each in flags.items():
        targeting = {k: v for k, v in each.items() if k != "variations"}
        items.append(
            {
                "key": key, "name": key.title(), "kind": "multivariate", "tags": ["web"], "temporary": True, "archived": False,
                "variations": [{"_id": str(n), "value": value} for n, value in enumerate(each["variations"])],
                "environments": dict.fromkeys(environments, targeting),
            }
        )  # fmt: skip
    return {
        "items": items,
        "totalCount": len(items),
        "segments": {"items": [{"key": k, **v} for k, v in segments.items()]},
    }


def context_of(user: Any) -> Any:
    own = {key: value for key, value in user.items() if key != "userId" and "." not in key}
    person = ldclient.Context.from_dict({"kind": "user", "key": user["userId"], **own})
    if "org.key" not in user:
        return person
    org = {"kind": "org", "key": user["org.key"]}
    if "org.tier" in user:
        org["tier"] = user["org.tier"]
    return ldclient.Context.create_multi(person, ldclient.Context.from_dict(org))


def with_keys(items: Any) -> Any:
    return {key: {"key": key, "version": 1, "salt": "s", **item} for key, item in items.items()}


@pytest.fixture
def evaluate_there(tmp_path):
    path = tmp_path / "flags.json"
    rollout = {
        "rollout": flag(fallthrough=ROLLOUT),
        "seeded": flag(fallthrough={**ROLLOUT, "seed": 61, "bucketBy": "email"}),
    }
    path.write_text(
        json.dumps({**DOCUMENT, "flags": with_keys(FLAGS | rollout), "segments": with_keys(SEGMENTS)})
    )
    config = Config("sdk", update_processor_class=Files.new_data_source(paths=[str(path)]), send_events=False)
    with ldclient.LDClient(config, start_wait=5) as client:
        assert client.is_initialized()
        yield lambda name, user: client.variation(name, context_of(user), None)


def users() -> Any:
    """Contexts of an organization have a key."""
    made = make_users(FIELDS)
    return [
        user if "org.key" in user else {k: v for k, v in user.items() if k != "org.tier"} for user in made
    ]


@pytest.mark.parametrize("document", [DOCUMENT, listed()], ids=["file", "REST"])
def test_exact_flags_give_what_launchdarkly_gives(document, evaluate_there):
    conversion = convert(document)
    assert {
        name: notes_of(conversion, name)
        for name, exactness in exactness_of(conversion).items()
        if exactness != "exact"
    } == {}
    assert differences(conversion, users(), evaluate_there) == []


def test_segments_stay_segments():
    conversion = convert(DOCUMENT)
    segments = {name: constraints for name, (_, constraints) in conversion.segments.items()}
    assert set(segments) == {
        "beta-users 1",
        "beta-users 2",
        "beta-users 3",
        "beta-users 4",
        "simple",
        "nested",
    }
    assert [c["contextName"] for c in segments["nested"]] == ["plan", "country"]


@pytest.mark.parametrize(
    ("name", "more", "field"),
    [("rollout", {}, "userId"), ("seeded", {"seed": 61, "bucketBy": "email"}, "email")],
)
def test_percentages_are_hashed_as_launchdarkly_does(name, more, field, evaluate_there):
    [converted] = convert({"flags": {name: flag(fallthrough=ROLLOUT | more)}}).flags
    [split] = converted.source.splits
    identifiers = [f"{n}@example.org" for n in range(1000)]
    there = [each for each in identifiers if evaluate_there(name, {"userId": each, "email": each})]
    assert pick_all(split, identifiers)[Result.ON] == there
    assert converted.strategies[0]["parameters"] == {"rollout": "30", "stickiness": field, "groupId": name}


def test_off_with_a_value_is_said():
    conversion = convert({"flags": {"a": flag(variations=TEXTS, on=False, off=0)}})
    assert notes_of(conversion, "a") == ["It is off and gives A; here, applications get their own default."]


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        (flag(rule(0, clause("a", "before", "soon"))), "soon is not a date-time."),
        (flag(rule(0, clause("kind", "in", "user"))), "A rule asks for the kind of a context."),
        (flag(rule(0, clause("a", "nearby", 1))), "The operator nearby has no equal."),
        (flag(rule(0, matching("none"))), "Segment none is not in the file."),
        (flag(rule(0, matching("loop"))), "Segment loop refers to itself."),
        (flag(rule(0, matching("big"))), "The members of segment big are not in the file, because it is a big segment."),
        (flag(rule(0, matching("part"))), "Segment part has a percentage of users, which a segment cannot have."),
        (flag(rule(0, clause("a", "matches", "x", negate=True))), "A constraint cannot say that a pattern does not match (a)."),
        (flag(rule(0, clause("a", "matches", "(?=x)"))), "a is compared with '(?=x)', which is not a valid regular expression (RE2)."),
        (flag(fallthrough=7), "It serves variation 7, but has only 2."),
        (flag(prerequisites=[{"key": "none", "variation": 0}]), "Its prerequisite none is not in the file."),
        (flag(prerequisites=[{"key": "child", "variation": 0}]), "Its prerequisite child has a prerequisite itself, which a parent cannot have."),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("missing", "result"), [("off", "imported off"), ("leave-out", "left out")])
def test_what_has_no_equal_is_said(odd, sentence, missing, result):
    segments = {
        "loop": {"rules": [{"clauses": [matching("loop")]}]},
        "big": {"unbounded": True},
        "part": {"rules": [{"clauses": [], "weight": 5}]},
    }
    flags = {"odd": odd, "parent": flag(), "child": flag(prerequisites=[{"key": "parent", "variation": 1}])}
    conversion = convert({"flags": flags, "segments": segments}, missing=Missing(missing))
    assert exactness_of(conversion)["odd"] == result
    assert notes_of(conversion, "odd") == [sentence]


def test_one_environment_is_chosen():
    document = listed({"on": FLAGS["on"]}, environments=("test", "production"))
    with pytest.raises(ValidationError, match="environment: choose one of production, test"):
        convert(document)
    with pytest.raises(ValidationError, match="staging is not an environment of the file"):
        convert(document, environment="staging")
    assert exactness_of(convert(document, environment="test")) == {"on": "exact"}


def test_errors_name_the_place():
    document = listed({"on": FLAGS["on"]})
    document["items"][0]["environments"]["production"]["on"] = "yes"
    with pytest.raises(ValidationError) as caught:
        convert(document)
    [problem] = caught.value.details
    assert problem.path == "items[0].environments.production.on"
