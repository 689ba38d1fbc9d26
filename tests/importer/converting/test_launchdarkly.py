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
from importer.converting.strategies import pick_all
from tests.importer.converting.comparing import convert, differences, exactness_of, make_users, notes_of
from tests.importer.converting.launchdarkly_flags import (
    DOCUMENT,
    FIELDS,
    FLAGS,
    ROLLOUT,
    SEGMENTS,
    TEXTS,
    clause,
    flag,
    listed,
    matching,
    rule,
)


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


def test_a_child_of_a_variant_with_a_long_name_names_it_whole():
    named = [{"value": "A", "name": f"{'n' * 200}a"}, {"value": "B", "name": f"{'n' * 200}b"}]
    document = listed(
        {
            "texts": flag(variations=TEXTS, fallthrough=ROLLOUT, off=None),
            "child": flag(fallthrough=0, prerequisites=[{"key": "texts", "variation": 0}]),
        }
    )
    document["items"][0]["variations"] = named
    exported = json.loads(convert(document).dump())
    variants = {v["name"] for s in exported["featureStrategies"] for v in s["variants"]}
    assert variants == {each["name"] for each in named}
    [parent] = exported["dependencies"][0]["dependencies"]
    assert parent["variants"] == [named[0]["name"]]


def test_off_with_a_value_is_said():
    conversion = convert({"flags": {"a": flag(variations=TEXTS, on=False, off=0)}})
    assert notes_of(conversion, "a") == ["It is off and gives A; here, applications get their own default."]


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        (flag(rule(0, clause("a", "before", "soon"))), "soon is not a date-time."),
        (flag(rule(0, clause("kind", "in", "user"))), "A rule asks for the kind of a context."),
        (flag(rule(0, clause("a", "nearby", 1))), "The operator nearby has no equivalent."),
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


def test_a_child_of_an_archived_flag_does_not_keep_the_rest_from_being_imported():
    document = listed({"old": flag(), "child": flag(prerequisites=[{"key": "old", "variation": 0}])})
    document["items"][0]["archived"] = True
    conversion = convert(document)
    assert notes_of(conversion, "child") == ["Its prerequisite old is archived, which a parent cannot be."]
    assert json.loads(conversion.dump())["dependencies"] == []


@pytest.mark.parametrize("form", ["REST", "file"])
def test_of_a_flag_that_is_there_twice_the_first_counts(form):
    on, child = flag(fallthrough=0), flag(fallthrough=0, prerequisites=[{"key": "on", "variation": 0}])
    document = listed({"on": on, "child": child})
    document["items"].append({**listed({"on": flag(variations=TEXTS, on=False)})["items"][0]})
    if form == "file":
        document = {"flags": {"on": on, "child": child}, "flagValues": {"on": "text"}}
    first, child, second = convert(document).flags
    assert [first.exactness, child.exactness, second.exactness] == ["exact", "exact", "left out"]
    assert first.is_enabled
    assert first.strategies[0]["variants"] == []
    assert [note.sentence for note in second.notes] == ["It cannot have this name here: is there twice."]


def test_flags_of_other_pages_and_tags_that_cannot_come_are_said():
    document = listed({"on": FLAGS["on"]})
    document["totalCount"] = 1200
    document["items"][0]["tags"] = ["web", "x", "y" * 51]
    conversion = convert(document)
    assert conversion.notes == (
        "The file has 1 of 1,200 flags. The others are on other pages of the list.",
        f"Tags have 2 to 50 characters here. Left out: x, {'y' * 51}.",
    )
    assert [tag["tagValue"] for tag in json.loads(conversion.dump())["featureTags"]] == ["web"]
    assert convert({"flags": document}).notes == conversion.notes


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
