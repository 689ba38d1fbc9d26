"""An import records audit events and an import run."""

import json
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from importer.models import ImportRun
from projects import models as m
from projects.revision import read_revisions
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"


def send(api: Any, sent: Any, **extra: Any) -> Any:
    response = api["admin"].post(IMPORT, sent, **extra)
    assert response.status_code == 200, response.content
    return response


def test_one_event_a_flag_and_one_for_the_import(api: Any) -> None:
    send(api, body("one", "two", contextFields=[{"name": "tier"}]))
    send(api, body("one", "two", featureStrategies=[strategy("one")]))
    events = list(AuditEvent.objects.order_by("id").values_list("type", "feature", "subject"))
    assert events == [
        ("context-field-created", None, "tier"),
        ("feature-created", "one", None),
        ("feature-created", "two", None),
        ("features-imported", None, None),
        ("feature-imported", "one", None),
        ("features-imported", None, None),
    ]
    change = AuditEvent.objects.get(type="feature-imported")
    assert (change.actor_name, change.project, change.environment) == ("admin", "shop", "development")
    assert change.before["strategies"] == []
    assert change.after["strategies"][0]["name"] == "flexibleRollout"
    assert AuditEvent.objects.order_by("-id")[0].after["change"] == 1


def test_what_it_creates_besides_flags_is_recorded_as_if_created_by_itself(api: Any) -> None:
    fields = [{"name": "tier", "project": "shop"}, {"name": "plan", "legalValues": [{"value": "pro"}]}]
    segments = [{"id": 5, "name": "vip", "constraints": []}]
    send(api, body("one", contextFields=fields, segments=segments))
    created = {e.subject: (e.project, e.after) for e in AuditEvent.objects.exclude(subject=None)}
    admin = api["admin"]
    [segment] = admin.get("/api/admin/segments").json()["segments"]
    assert segment["createdBy"] == "admin"
    for name, found in (
        ("tier", admin.get("/api/admin/context/tier").json()),
        ("plan", admin.get("/api/admin/context/plan").json()),
        ("vip", segment),
    ):
        project, after = created[name]
        assert project == found.get("project")
        assert after.items() <= found.items()
    told = [event["type"] for event in api["owner"].get("/api/admin/events").json()["events"]]
    assert "context-field-created" in told


def test_archiving_is_recorded(api: Any) -> None:
    send(api, body("one"))
    sent = body()
    sent["data"]["features"] = [{"name": "one", "archived": True}]
    send(api, sent)
    assert AuditEvent.objects.filter(type="feature-archived", feature="one").exists()
    assert [stage.stage for stage in m.Flag.objects.get().lifecycle.order_by("id")] == ["initial", "archived"]


def test_the_run_keeps_what_it_takes_to_undo_it(api: Any, people: Any) -> None:
    send(api, body("one"))
    send(api, body("one", "two", featureEnvironments=[switch("one")]))
    run = ImportRun.objects.order_by("-created_at")[0]
    assert (run.source, run.state, run.caller_name) == ("api", "done", "admin")
    assert (run.caller_id, run.project, run.environment) == (people["admin"].pk, "shop", "development")
    assert run.counts["create"] == run.counts["change"] == 1
    assert run.before["one"]["enabled"] is False
    assert set(run.after) == {"one", "two"}


def test_a_refused_import_leaves_nothing(api: Any) -> None:
    assert api["admin"].post(IMPORT, body("not a name")).status_code == 400
    assert not ImportRun.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    ("query", "headers"), [("?report=1", {}), ("", {"HTTP_PREFER": "respond-async, return=representation"})]
)
def test_answers_the_result_when_asked(query: str, headers: Any, api: Any) -> None:
    send(api, body("one", "old"))
    m.Flag.objects.filter(name="old").update(archived_at="2026-01-01T00:00:00Z")
    response = api["admin"].post(IMPORT + query, body("one", "old", "two"), **headers)
    report = json.loads(response.content)
    assert report["features"] == [
        {"name": "one", "action": "same"},
        {"name": "old", "action": "skip", "reason": "old is archived and will be skipped."},
        {"name": "two", "action": "create"},
    ]


def test_raises_the_revision_only_when_something_changes(api: Any) -> None:
    send(api, body("one"))
    first = read_revisions(["shop"])
    send(api, body("one"))
    assert read_revisions(["shop"]) == first
    send(api, body("one", featureStrategies=[strategy("one")]))
    assert read_revisions(["shop"])["shop"] > first["shop"]
