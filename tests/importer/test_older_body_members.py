"""Older members of an import body apply if the newer ones do not mention the flag."""

import json
from typing import Any

import pytest

from importer.plan.import_plan import read_flags
from projects.models import TagType
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}
OTHER = VARIANT | {"name": "b"}


def document(api: Any, sent: Any) -> Any:
    response = api["admin"].post(IMPORT, sent)
    assert response.status_code == 200, response.content
    return read_flags(["one"], project="shop", environment="development")["one"].document


def notes(api: Any, sent: Any) -> list[str]:
    report = json.loads(api["admin"].post(VALIDATE, sent).content)
    return [
        item
        for entry in report["warnings"]
        if entry["message"] == "Please note:"
        for item in entry["affectedItems"]
    ]


def older(**feature: Any) -> Any:
    sent = body("two")
    sent["data"]["features"].append({"name": "one", **feature})
    return sent


OLDER = {
    "enabled": (older(enabled=True, strategies=[{"name": "default"}]), "enabled", True),
    "environments": (older(environments=[{"name": "development", "enabled": True}]), "enabled", True),
    "variants": (older(variants=[VARIANT]), "variants", [VARIANT]),
    "variants of an environment": (
        older(environments=[{"name": "development", "enabled": False, "variants": [VARIANT]}]),
        "variants",
        [VARIANT],
    ),
    "tags": (older(tags=[{"type": "simple", "value": "web"}]), "tags", [["simple", "web"]]),
    "tags in the deprecated way": (
        body("one", featureTags=[{"featureName": "one", "type": "simple", "value": "web"}]),
        "tags",
        [["simple", "web"]],
    ),
    "dependencies": (
        older(dependencies=[{"feature": "two"}]),
        "parents",
        [{"feature": "two", "enabled": True, "variants": []}],
    ),
    "links": (
        older(links=[{"url": "https://example.com"}]),
        "links",
        [{"url": "https://example.com", "title": None}],
    ),
}


@pytest.mark.parametrize(("sent", "part", "expected"), OLDER.values(), ids=OLDER)
def test_counts_where_nothing_newer_speaks(sent: Any, part: str, expected: Any, api: Any) -> None:
    assert document(api, sent)[part] == expected
    assert notes(api, sent) == []


@pytest.mark.parametrize(
    "sent",
    [
        older(strategies=[{"name": "default"}]),
        older(environments=[{"name": "development", "enabled": False, "strategies": [{"name": "default"}]}]),
        body("one", featureEnvironments=[switch("one", enabled=False, strategies=[{"name": "default"}])]),
    ],
)
def test_older_places_of_strategies(sent: Any, api: Any) -> None:
    assert [s["name"] for s in document(api, sent)["strategies"]] == ["default"]


def both(newer: Any, **feature: Any) -> Any:
    sent = older(**feature)
    sent["data"] |= newer
    return sent


NEWER = {
    "the switch": (
        both({"featureEnvironments": [switch("one", enabled=False)]}, enabled=True),
        "enabled",
        False,
    ),
    "variants": (
        both({"featureEnvironments": [switch("one", enabled=False, variants=[OTHER])]}, variants=[VARIANT]),
        "variants",
        [OTHER],
    ),
    "tags": (
        both(
            {"featureTags": [{"featureName": "one", "tagType": "simple", "tagValue": "new"}]},
            tags=[{"type": "simple", "value": "old"}],
        ),
        "tags",
        [["simple", "new"]],
    ),
    "dependencies": (
        both({"dependencies": [{"feature": "one", "dependencies": []}]}, dependencies=[{"feature": "two"}]),
        "parents",
        [],
    ),
    "a dependency on the same flag": (
        both(
            {"dependencies": [{"feature": "one", "dependencies": [{"feature": "two"}]}]},
            dependencies=[{"feature": "two", "enabled": False}],
        ),
        "parents",
        [{"feature": "two", "enabled": True, "variants": []}],
    ),
    "the value of a tag": (
        body(
            "one",
            featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "new", "value": "old"}],
        ),
        "tags",
        [["simple", "new"]],
    ),
}


@pytest.mark.parametrize(("sent", "part", "expected"), NEWER.values(), ids=NEWER)
def test_the_newer_place_counts_and_validate_says_so(sent: Any, part: str, expected: Any, api: Any) -> None:
    assert document(api, sent)[part] == expected
    [note] = notes(api, sent)
    assert note.startswith("one: ")
    assert "is ignored because it differs from" in note


def test_newer_strategies_count(api: Any) -> None:
    sent = both({"featureStrategies": [strategy("one", title="new")]}, strategies=[{"name": "default"}])
    assert [s["title"] for s in document(api, sent)["strategies"]] == ["new"]
    assert notes(api, sent) == [
        "one: data.features[1].strategies is ignored in favor of data.featureStrategies[0]"
    ]


def test_other_environments_are_not_imported_and_noted(api: Any) -> None:
    sent = older(environments=[{"name": "production", "enabled": True}])
    assert not document(api, sent)["enabled"]
    assert notes(api, sent) == [
        "one: data.features[1].environments[0] is not imported because it is for production, not development"
    ]


@pytest.mark.parametrize("said", [{"environment": "production"}, {"name": "production"}], ids=str)
def test_a_file_of_another_environment_is_noted(said: Any, api: Any) -> None:
    """An entry names its environment in `environment` or, as the specification has it, in `name`."""
    sent = body("one", featureEnvironments=[switch("one", **said)])
    assert notes(api, sent) == ["This file was exported from production; you are importing into development."]


def test_a_tag_type_that_no_tag_uses_is_noted(api: Any) -> None:
    sent = body("one", tagTypes=[{"name": "simple"}, {"name": "team"}])
    assert notes(api, sent) == ["Tag type team is not created because no tag uses it."]


def test_of_tag_types_with_one_name_the_last_counts_and_validate_says_so(api: Any) -> None:
    tags = [{"featureName": "one", "tagType": "team", "tagValue": "web"}]
    types = [{"name": "team", "description": description} for description in ("Ours", "Yours")]
    sent = body("one", featureTags=tags, tagTypes=types)
    assert notes(api, sent) == ["Tag type team is listed more than once: the last counts."]
    document(api, sent)
    assert TagType.objects.get(name="team").description == "Yours"
    assert notes(api, body("one", featureTags=tags, tagTypes=[types[0]] * 2)) == []


def test_children_that_contradict_the_dependencies_are_noted(api: Any) -> None:
    assert notes(api, older(children=["two"])) == [
        "one: data.features[1].children lists two, but two has no such dependency"
    ]


def test_what_is_read_and_not_stored(api: Any) -> None:
    sent = older(favorite=True, lastSeenAt="2026-01-01T00:00:00Z", project="elsewhere")
    assert document(api, sent)["type"] == "release"
