"""POST /api/admin/features-batch/export, and importing its result again."""

import json
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from projects import models as m
from projects.export import project_backup
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
EXPORT = "/api/admin/features-batch/export"


@pytest.fixture
def flags(api: Any) -> None:
    m.Segment.objects.create(
        name="vip", constraints=[{"contextName": "userId", "operator": "IN", "values": ["1"]}]
    )
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "tier"}]
    sent = body(
        "one",
        "two",
        "three",
        featureStrategies=[
            strategy(
                "one",
                title="last",
                sortOrder=9,
                constraints=[{"contextName": "plan", "operator": "IN", "values": ["gold"]}],
            ),
            strategy("one", title="first", sortOrder=1, segments=[7], disabled=True),
            strategy("two", variants=variants),
        ],
        segments=[{"id": 7, "name": "vip"}],
        featureEnvironments=[switch("one", variants=variants)],
        contextFields=[
            {"name": "plan", "sortOrder": 4},
            {"name": "tier", "stickiness": True},
            {"name": "unused"},
        ],
        tagTypes=[{"name": "team", "icon": "T"}],
        featureTags=[{"featureName": "one", "tagType": "team", "tagValue": "web"}],
        dependencies=[
            {"feature": "one", "dependencies": [{"feature": "two", "variants": ["a"]}, {"feature": "three"}]}
        ],
        links=[{"feature": "one", "links": [{"url": "https://example.com", "title": "Ticket"}]}],
    )
    response = api["admin"].post(IMPORT, sent)
    assert response.status_code == 200, response.content


def export(client: Any, query: str = "", **fields: Any) -> Any:
    response = client.post(EXPORT + query, {"environment": "development", **fields})
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def names(document: Any) -> list[str]:
    return [feature["name"] for feature in document["features"]]


def test_has_nine_keys_in_their_order(flags: None, api: Any) -> None:
    assert list(export(api["viewer"], project="shop")) == [
        "features",
        "featureStrategies",
        "featureEnvironments",
        "contextFields",
        "featureTags",
        "segments",
        "tagTypes",
        "dependencies",
        "links",
    ]


def test_writes_strategies_in_their_order(flags: None, api: Any) -> None:
    listed = export(api["viewer"], features=["one"])["featureStrategies"]
    assert [(s["title"], s["sortOrder"]) for s in listed] == [("first", 1), ("last", 9)]


def test_writes_what_the_flags_refer_to(flags: None, api: Any) -> None:
    document = export(api["viewer"], features=["one", "two"])
    assert [field["name"] for field in document["contextFields"]] == ["plan", "tier"]
    assert [segment["name"] for segment in document["segments"]] == ["vip"]
    assert document["tagTypes"] == [{"name": "team", "description": None, "icon": "T", "color": None}]


def test_segments_are_id_and_name_as_the_reference_reads_them(flags: None, api: Any) -> None:
    [segment] = export(api["viewer"], features=["one"])["segments"]
    assert segment == {"id": m.Segment.objects.get().id, "name": "vip"}


def test_segments_in_full_create_those_that_are_missing(flags: None, api: Any) -> None:
    exported = export(api["admin"], "?segments=full", project="shop")
    m.Flag.objects.all().delete()
    m.Segment.objects.all().delete()
    sent = {"project": "shop", "environment": "development", "data": exported}
    assert api["admin"].post(IMPORT, sent).status_code == 200
    [constraint] = m.Segment.objects.get(name="vip").constraints
    assert constraint["values"] == ["1"]


def test_the_consoles_file_and_a_backup_have_segments_in_full(flags: None, browse: Any) -> None:
    file = browse("viewer").get("/projects/shop/export?environment=development")
    assert json.loads(file.content)["segments"][0]["constraints"][0]["values"] == ["1"]
    assert project_backup("shop")["development"]["segments"][0]["constraints"][0]["values"] == ["1"]


def test_refuses_another_form_of_segments(flags: None, api: Any) -> None:
    response = api["viewer"].post(EXPORT + "?segments=all", {"environment": "development", "project": "shop"})
    record = json.loads(response.content)
    assert (response.status_code, record["details"][0]["path"]) == (400, "segments")
    assert record["details"][0]["message"] == 'must be full or absent, not "all"'


def test_selects_by_tag_then_names_then_project(flags: None, api: Any) -> None:
    client = api["viewer"]
    assert names(export(client, tag="web", features=["two"], project="shop")) == ["one"]
    assert names(export(client, features=["two", "nosuch"], project="default")) == ["two"]
    assert names(export(client, features=[], project="shop")) == ["one", "three", "two"]


def test_archived_flags_come_when_they_are_named(flags: None, api: Any) -> None:
    m.Flag.objects.filter(name="three").update(archived_at="2026-01-01T00:00:00Z")
    assert names(export(api["viewer"], project="shop")) == ["one", "two"]
    [feature] = export(api["viewer"], features=["three"])["features"]
    assert feature["archived"]


def test_a_backup_has_archived_flags_too(flags: None) -> None:
    m.Flag.objects.filter(name="three").update(archived_at="2026-01-01T00:00:00Z")
    backup = project_backup("shop")
    assert {environment: names(document) for environment, document in backup.items()} == {
        "development": ["one", "three", "two"],
        "production": ["one", "three", "two"],
    }


def test_only_flags_of_readable_projects(flags: None, api: Any) -> None:
    assert api["admin"].post(IMPORT, body("elsewhere", project="default")).status_code == 200
    assert names(export(api["reader"], features=["one", "elsewhere"])) == ["one"]
    assert api["reader"].post(EXPORT, {"environment": "development", "project": "default"}).status_code == 400


def test_is_recorded(flags: None, api: Any) -> None:
    export(api["viewer"], project="shop")
    event = AuditEvent.objects.get(type="features-exported")
    assert (event.actor_name, event.project, event.after) == ("viewer", "shop", {"features": 3})


def test_a_file_to_download(flags: None, api: Any) -> None:
    response = api["viewer"].post(
        EXPORT, {"environment": "development", "project": "shop", "downloadFile": True}
    )
    assert response["Content-Disposition"] == 'attachment; filename="shop-development.json"'
    assert "Content-Disposition" not in api["viewer"].post(
        EXPORT, {"environment": "development", "tag": "web"}
    )


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ({"project": "shop"}, "environment"),
        ({"environment": "development"}, ""),
        ({"environment": "development", "features": "one"}, "features"),
        ({"environment": "development", "features": [""]}, "features[0]"),
        ({"environment": "staging", "project": "shop"}, "environment"),
        ({"environment": "development", "project": "nosuch"}, "project"),
    ],
)
def test_refuses(sent: Any, path: str, flags: None, api: Any) -> None:
    response = api["viewer"].post(EXPORT, sent)
    record = json.loads(response.content)
    assert (response.status_code, record["name"]) == (400, "ValidationError")
    assert record["details"][0]["path"].startswith(path), record


# There and back --------------------------------------------------------------------------------------------


def without_chance(document: Any, project: str | None = None) -> Any:
    for strategy_ in document["featureStrategies"]:
        del strategy_["id"]
    for listed in document["links"]:
        for link in listed["links"]:
            del link["id"]
    for feature in document["features"]:
        feature["project"] = project or feature["project"]
    return document


def test_imported_elsewhere_it_exports_the_same(flags: None, api: Any) -> None:
    exported = export(api["admin"], project="shop")
    m.Dependency.objects.all().delete()
    m.Flag.objects.all().delete()
    sent = {"project": "default", "environment": "development", "data": exported}
    assert api["admin"].post(IMPORT, sent).status_code == 200
    exported_again = export(api["admin"], project="default")
    assert without_chance(exported_again) == without_chance(exported, "default")


def test_imported_in_place_it_changes_nothing_and_records_no_flag(flags: None, api: Any) -> None:
    exported = export(api["admin"], project="shop")
    last = AuditEvent.objects.order_by("-id").values_list("id", flat=True)[0]
    ids = set(m.Strategy.objects.values_list("id", flat=True))
    sent = {"project": "shop", "environment": "development", "data": exported}
    response = api["admin"].post(IMPORT + "?report=1", sent)
    assert json.loads(response.content)["counts"] == {
        "create": 0,
        "change": 0,
        "same": 3,
        "skip": 0,
        "refuse": 0,
    }
    assert set(m.Strategy.objects.values_list("id", flat=True)) == ids
    events = AuditEvent.objects.filter(id__gt=last).values_list("type", flat=True)
    assert list(events) == ["features-imported"]
    assert export(api["admin"], project="shop") == exported


def test_a_restored_backup_is_the_same(flags: None, api: Any) -> None:
    m.Flag.objects.filter(name="one").update(archived_at="2026-01-01T00:00:00Z")
    backup = project_backup("shop")
    m.Dependency.objects.all().delete()
    m.Flag.objects.all().delete()
    for environment, document in backup.items():
        sent = {"project": "shop", "environment": environment, "data": document}
        response = api["admin"].post(IMPORT, sent)
        assert response.status_code == 200, response.content
    restored = project_backup("shop")
    assert without_chance(restored["development"]) == without_chance(backup["development"])


def test_a_context_field_that_only_a_segment_uses_moves_with_it(flags: None, api: Any) -> None:
    field = m.ContextField.objects.create(
        name="region", stickiness=True, legal_values=[{"value": "north"}], description="Where"
    )
    constraint = {"contextName": "region", "operator": "IN", "values": ["north"]}
    m.Segment.objects.filter(name="vip").update(constraints=[constraint])
    names_only = export(api["admin"], project="shop")
    assert "region" not in [field["name"] for field in names_only["contextFields"]]
    exported = export(api["admin"], "?segments=full", project="shop")

    m.StrategySegment.objects.all().delete()
    m.Segment.objects.all().delete()
    field.delete()
    sent = {"project": "shop", "environment": "development", "data": exported}
    assert api["admin"].post(IMPORT, sent).status_code == 200
    region = m.ContextField.objects.get(name="region")
    assert (region.stickiness, region.legal_values, region.description) == (
        True,
        [{"value": "north"}],
        "Where",
    )


def test_a_stickiness_that_is_missing_here_is_noted(flags: None, api: Any) -> None:
    m.ContextField.objects.create(name="region")
    sent = body("one", contextFields=[{"name": "region", "stickiness": True}])
    validation = api["admin"].post(f"{IMPORT[:-6]}validate", sent).json()
    notes = [note for warning in validation["warnings"] for note in warning["affectedItems"]]
    assert any(
        "Context field region is used for stickiness in the file, but not here" in note for note in notes
    )
    assert api["admin"].post(IMPORT, sent).status_code == 200
    assert not m.ContextField.objects.get(name="region").stickiness
