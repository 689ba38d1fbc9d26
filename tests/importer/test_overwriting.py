"""What an import replaces, resets, keeps and adds for an existing flag."""

from typing import Any

import pytest

from importer.plan.import_plan import read_flags
from projects.models import Flag, ProjectEnvironment, Strategy
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}


def send(api: Any, sent: Any) -> None:
    response = api["admin"].post(IMPORT, sent)
    assert response.status_code == 200, response.content


def document(name: str = "one", environment: str = "development") -> Any:
    return read_flags([name], project="shop", environment=environment)[name].document


@pytest.fixture
def stored_flag(api: Any) -> None:
    """A flag with everything on it."""
    sent = body(
        "two",
        featureStrategies=[strategy("one", title="old")],
        featureEnvironments=[switch("one", variants=[VARIANT])],
        featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "old"}],
        links=[{"feature": "one", "links": [{"url": "https://old.example.com"}]}],
        dependencies=[{"feature": "one", "dependencies": [{"feature": "two"}]}],
    )
    sent["data"]["features"].append(
        {"name": "one", "type": "experiment", "description": "old", "stale": True, "impressionData": True}
    )
    send(api, sent)
    send(api, body(featureStrategies=[strategy("one")], environment="production"))


def test_what_is_not_said_falls_back_or_stays(stored_flag: None, api: Any) -> None:
    send(api, body("one"))
    now = document()
    assert (now["type"], now["description"], now["stale"], now["impressionData"]) == (
        "release",
        None,
        False,
        False,
    )
    assert (now["tags"], now["strategies"]) == ([], [])
    assert now["enabled"]
    assert [variant["name"] for variant in now["variants"]] == ["a"]
    assert len(now["links"]) == len(now["parents"]) == 1
    assert len(document(environment="production")["strategies"]) == 1


def test_empty_lists_clear(stored_flag: None, api: Any) -> None:
    send(
        api,
        body(
            "one",
            featureEnvironments=[switch("one", enabled=False, variants=[])],
            links=[{"feature": "one", "links": []}],
            dependencies=[{"feature": "one", "dependencies": []}],
        ),
    )
    now = document()
    assert (now["variants"], now["links"], now["parents"], now["enabled"]) == ([], [], [], False)


def test_a_flag_that_is_not_listed_is_added_to(stored_flag: None, api: Any) -> None:
    send(
        api,
        body(
            featureStrategies=[strategy("one", title="new")],
            featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "new"}],
        ),
    )
    now = document()
    assert [(s["title"], s["sortOrder"]) for s in now["strategies"]] == [("old", 0), ("new", 1)]
    assert now["tags"] == [["simple", "new"], ["simple", "old"]]
    assert (now["description"], now["enabled"]) == ("old", True)


def test_validate_tells_what_is_overwritten_from_what_is_added_to(stored_flag: None, api: Any) -> None:
    def overwritten(sent: Any) -> list[str]:
        report = api["admin"].post(VALIDATE, sent).json()
        return [n for w in report["warnings"] if "overwritten" in w["message"] for n in w["affectedItems"]]

    assert overwritten(body("one")) == ["one"]
    assert overwritten(body(featureStrategies=[strategy("one")])) == []


def test_an_empty_value_beside_values_is_nothing(api: Any) -> None:
    """The specification asks nothing of a value that the operator does not read."""
    constraint = {"contextName": "plan", "operator": "IN", "values": ["gold"], "value": ""}
    send(api, body("new", featureStrategies=[strategy("new", constraints=[constraint])]))


def test_strategies_keep_their_ids(stored_flag: None, api: Any) -> None:
    """Those that stay, and one that replaces another of its type."""
    strategies = Strategy.objects.filter(flag__name="one", environment="development")
    [kept] = strategies.values_list("id", flat=True)
    send(api, body("one", featureStrategies=[strategy("one", title="old"), strategy("one", title="new")]))
    assert dict(strategies.values_list("title", "id"))["old"] == kept
    send(api, body("one", featureStrategies=[strategy("one", title="other", sortOrder=7)]))
    assert list(strategies.values_list("title", "id")) == [("other", kept)]


def test_strategies_keep_the_order_of_the_file(api: Any) -> None:
    titles = [f"{number}" for number in range(12)]
    send(api, body("one", featureStrategies=[strategy("one", title=title) for title in titles]))
    assert [s["title"] for s in document()["strategies"]] == titles
    equal = [strategy("one", title=title, sortOrder=3) for title in reversed(titles)]
    send(api, body("one", featureStrategies=equal))
    assert [s["title"] for s in document()["strategies"]] == titles[::-1]
    assert {s["sortOrder"] for s in document()["strategies"]} == {3}


@pytest.mark.parametrize("orders", [[2.5, 0.5, 1], [2**40, 1, 2]])
def test_orders_that_cannot_be_stored_become_places(orders: list[float], api: Any) -> None:
    strategies = [strategy("one", title=str(order), sortOrder=order) for order in orders]
    send(api, body("one", featureStrategies=strategies))
    stored = document()["strategies"]
    assert [s["title"] for s in stored] == [str(order) for order in sorted(orders)]
    assert [s["sortOrder"] for s in stored] == [0, 1, 2]


def test_an_empty_rollout_stays_nobody(api: Any) -> None:
    """As it is in the SDKs of the server that the file is from. A missing one is everybody, as it is there."""
    sent = body(
        "one",
        featureStrategies=[strategy("one", parameters={"rollout": ""})],
        featureEnvironments=[switch("one")],
    )
    send(api, sent)
    assert document()["strategies"][0]["parameters"]["rollout"] == ""
    asked = {"environment": "development", "projects": ["shop"], "context": {"userId": "7"}}
    [flag] = api["viewer"].post("/api/admin/playground", asked).json()["features"]
    assert flag["isEnabled"] is False
    del sent["data"]["featureStrategies"][0]["parameters"]["rollout"]
    send(api, sent)
    assert document()["strategies"][0]["parameters"]["rollout"] == "100"


def test_switched_on_it_gets_the_default_strategy_of_the_environment(api: Any) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="development").update(
        default_strategy={"name": "flexibleRollout", "parameters": {"rollout": "25", "stickiness": "userId"}}
    )
    sent = body(
        "one", featureStrategies=[strategy("one", disabled=True)], featureEnvironments=[switch("one")]
    )
    send(api, sent)
    disabled, default = document()["strategies"]
    assert (disabled["disabled"], default["sortOrder"]) == (True, 1)
    assert default["parameters"] == {"rollout": "25", "stickiness": "userId", "groupId": "one"}
    send(api, sent)
    assert Strategy.objects.count() == 2


def test_times_of_the_file_count_for_new_flags(api: Any) -> None:
    sent = body()
    sent["data"]["features"] = [
        {
            "name": "one",
            "createdAt": "2020-01-02T03:04:05Z",
            "lifecycle": {"stage": "live", "enteredStageAt": "2021-01-01T00:00:00Z"},
        },
        {"name": "old", "archived": True, "archivedAt": "2022-01-01t00:00:00z"},
    ]
    send(api, sent)
    new, old = Flag.objects.get(name="one"), Flag.objects.get(name="old")
    assert new.created_at.isoformat() == "2020-01-02T03:04:05+00:00"
    assert [(stage.stage, stage.entered_at.year) for stage in new.lifecycle.all()] == [
        ("initial", 2020),
        ("live", 2021),
    ]
    assert old.archived_at is not None
    assert old.archived_at.year == 2022
    assert old.lifecycle.get(stage="archived").entered_at == old.archived_at


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_stage_of_archived_flags_waits_until_the_file_archives_the_flag(is_stored: bool, api: Any) -> None:
    sent = body()
    stage = {"stage": "archived", "enteredStageAt": "2021-01-01T00:00:00Z"}
    sent["data"]["features"] = [{"name": "one", "lifecycle": stage}]
    report = api["admin"].post("/api/admin/features-batch/validate", sent).json()
    note = "one: data.features[0].lifecycle is not imported because the file does not archive the flag"
    assert report["warnings"] == [{"message": "Please note:", "affectedItems": [note]}]
    send(api, sent)
    assert list(Flag.objects.get().lifecycle.values_list("stage", flat=True)) == ["initial"]
    if is_stored:  # as versions before wrote it
        Flag.objects.get().lifecycle.create(stage="archived", entered_at=stage["enteredStageAt"])
    sent["data"]["features"][0]["archived"] = True
    send(api, sent)
    flag = Flag.objects.get()
    assert flag.archived_at is not None
    assert flag.lifecycle.get(stage="archived").entered_at.year == flag.archived_at.year


# Archived flags --------------------------------------------------------------------------------------------


def test_an_archived_flag_is_skipped_and_stays_archived(stored_flag: None, api: Any) -> None:
    Flag.objects.filter(name="one").update(archived_at="2026-01-01T00:00:00Z")
    send(api, body("one", "three", featureStrategies=[strategy("one", title="new")]))
    assert Flag.objects.get(name="one").is_archived
    assert not Strategy.objects.filter(title="new").exists()
    assert Flag.objects.filter(name="three").exists()


def test_an_import_archives_a_flag_and_switches_it_off(stored_flag: None, api: Any) -> None:
    sent = body()
    sent["data"]["features"] = [{"name": "one", "archived": True}]
    send(api, sent)
    now = document()
    assert (now["archived"], now["enabled"]) == (True, False)


def test_a_parent_cannot_be_archived(stored_flag: None, api: Any) -> None:
    sent = body()
    sent["data"]["features"] = [{"name": "two", "archived": True}]
    response = api["admin"].post(IMPORT, sent)
    assert response.status_code == 400
    assert b"two cannot be archived: one depends on it" in response.content
