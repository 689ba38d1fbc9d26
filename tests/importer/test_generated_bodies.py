"""Generated import bodies succeed or fail without changes, and validate predicts which.

Set ``FLAGADMIN_EXAMPLES=20`` for an overnight run.
"""

import json
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings

from importer.body.schemas import parse_body
from importer.plan.build import plan_import
from importer.plan.import_plan import Action, read_flags
from projects import models as m
from tests.importer.contents import contents
from tests.importer.generated_bodies import BODIES, mutated_bodies
from tests.support.examples import examples

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]
IMPORT, VALIDATE = "/api/admin/features-batch/import", "/api/admin/features-batch/validate"

generated = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def world(shop: m.Project, api: Any, callers: Any) -> Any:
    """A flag to overwrite, an archived one, one of another project, a segment; a client, and its caller."""
    m.Segment.objects.create(name="here", constraints=[])
    body = {
        "features": [{"name": "kept"}, {"name": "old"}],
        "featureStrategies": [{"name": "default", "featureName": "kept"}],
        "tagTypes": [],
    }
    for project, names in (("shop", ("kept", "old")), ("default", ("elsewhere",))):
        data = {**body, "features": [{"name": name} for name in names]}
        if project == "default":
            data["featureStrategies"] = []
        sent = {"project": project, "environment": "development", "data": data}
        assert api["admin"].post(IMPORT, sent).status_code == 200
    m.Flag.objects.filter(name="old").update(archived_at="2026-01-01T00:00:00Z")
    return api["admin"], callers("admin")


@generated
@given(sent=mutated_bodies())
def test_any_body_is_answered_and_validate_agrees(world: Any, sent: Any) -> None:
    client, _ = world
    before = contents()
    with transaction.atomic():
        validated = client.post(VALIDATE, data=json.dumps(sent), content_type="application/json")
        assert contents() == before
        imported = client.post(IMPORT, data=json.dumps(sent), content_type="application/json")
        assert imported.status_code in (200, 400, 404), (imported.status_code, imported.content)
        if imported.status_code != 200:
            record = json.loads(imported.content)
            is_unknown = imported.status_code == 404
            assert record["name"] == ("NotFoundError" if is_unknown else "ValidationError")
            assert not is_unknown or sent["project"] not in ("", "shop", "default", None)
            assert record["id"]
            assert contents() == before
        if validated.status_code == 200:
            assert can_be_applied(validated) == (imported.status_code == 200)
        else:
            assert (validated.status_code, imported.status_code) == (400, 400)
        transaction.set_rollback(True)


def can_be_applied(response: Any) -> bool:
    report = json.loads(response.content)
    return not report["errors"] and not report["permissions"]


@generated
@given(sent=BODIES)
def test_import_does_what_the_plan_said_and_a_second_one_nothing(world: Any, sent: Any) -> None:
    client, caller = world
    with transaction.atomic():
        parsed = parse_body(json.dumps(sent).encode())
        plan = plan_import(parsed, caller=caller)
        response = client.post(IMPORT, data=json.dumps(sent), content_type="application/json")
        assert plan.can_be_applied == (response.status_code == 200), response.content
        if plan.can_be_applied:
            check_as_planned(plan)
            listed = {feature["name"] for feature in sent["data"]["features"]}
            check_second_time(parsed, listed, caller)
        transaction.set_rollback(True)


def check_as_planned(plan: Any) -> None:
    stored = read_flags(list(plan.flags), project="shop", environment="development")
    segments = dict(m.Segment.objects.values_list("name", "id"))
    created_ids = {new["id"]: segments[new["name"]] for new in plan.references.new_segments}
    for flag in plan.with_action(Action.CREATE, Action.CHANGE, Action.SAME):
        for strategy in flag.after["strategies"]:
            strategy["segments"] = [created_ids.get(segment, segment) for segment in strategy["segments"]]
        assert stored[flag.name].document == flag.after


def check_second_time(parsed: Any, listed: set[str], caller: Any) -> None:
    """What a file lists in full is then as the file says; what it only adds to would grow again."""
    second_plan = plan_import(parsed, caller=caller)
    for flag in second_plan.flags.values():
        if flag.name in listed:
            assert flag.action in (Action.SAME, Action.SKIP, Action.REFUSE), flag
