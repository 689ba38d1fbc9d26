"""An import can be taken back while nothing that it wrote has changed since."""

import pytest
from django.db import transaction

from flagadmin.audit.models import AuditEvent
from flagadmin.errors import Conflict, InvalidOperation, NoAccess, NotFound
from importer.apply import import_body
from importer.models import ImportRun
from importer.state import read_flags
from importer.undo import undo_import
from importer.wire import read_body
from projects.models import Dependency, Flag, FlagEnvironment, Strategy
from tests.importer.bodies import body, strategy, switch

pytestmark = pytest.mark.django_db


def state(*names):
    stored = read_flags(names, project="shop", environment="development")
    return {name: flag.document for name, flag in stored.items()}


def rich(rollout: str):
    return body(
        "one",
        "two",
        featureStrategies=[strategy("one", parameters={"rollout": rollout}), strategy("two")],
        featureEnvironments=[switch("one")],
        featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": f"at {rollout}"}],
        links=[{"feature": "one", "links": [{"url": f"https://example.com/{rollout}"}]}],
        dependencies=[{"feature": "one", "dependencies": [{"feature": "two", "enabled": rollout == "10"}]}],
    )


def test_puts_changed_flags_back_and_archives_created_ones(callers):
    import_body(read_body(rich("10")), caller=callers("admin"))
    before = state("one", "two")
    given = rich("20")
    given["data"]["features"].append({"name": "three"})
    run = import_body(read_body(given), caller=callers("admin"))
    assert state("one") != {"one": before["one"]}

    undone = undo_import(run.id, caller=callers("admin"))

    assert undone.state == ImportRun.State.UNDONE
    assert state("one", "two") == before
    assert Flag.objects.get(name="three").archived_at is not None
    kinds = list(AuditEvent.objects.order_by("-id").values_list("type", "feature")[:3])
    assert kinds == [("import-undone", None), ("feature-archived", "three"), ("import-undone", "one")]


def test_brings_back_what_the_import_archived(callers):
    import_body(read_body(body("one")), caller=callers("admin"))
    given = body("one")
    given["data"]["features"][0]["archived"] = True
    run = import_body(read_body(given), caller=callers("admin"))
    assert Flag.objects.get(name="one").archived_at is not None
    undo_import(run.id, caller=callers("admin"))
    flag = Flag.objects.get(name="one")
    assert flag.archived_at is None
    assert [stage.stage for stage in flag.lifecycle.all()] == ["initial"]


def test_refuses_when_a_flag_has_changed_since(callers):
    run = import_body(read_body(body("one")), caller=callers("admin"))
    FlagEnvironment.objects.filter(flag__name="one", environment="development").update(enabled=True)
    with pytest.raises(Conflict, match="one was changed"):
        undo_import(run.id, caller=callers("admin"))
    assert Flag.objects.get(name="one").archived_at is None


def test_refuses_when_a_created_flag_is_in_use_in_another_environment(callers):
    run = import_body(read_body(body("one")), caller=callers("admin"))
    Strategy.objects.create(flag=Flag.objects.get(name="one"), environment_id="production", name="default")
    with pytest.raises(Conflict, match="one was changed"):
        undo_import(run.id, caller=callers("admin"))


def test_refuses_to_archive_a_parent_of_another_flag(callers):
    import_body(read_body(body("child")), caller=callers("admin"))
    run = import_body(read_body(body("parent")), caller=callers("admin"))
    Dependency.objects.create(flag=Flag.objects.get(name="child"), parent=Flag.objects.get(name="parent"))
    with pytest.raises(InvalidOperation, match="child"), transaction.atomic():
        undo_import(run.id, caller=callers("admin"))
    assert Flag.objects.get(name="parent").archived_at is None


def test_refuses_a_second_time(callers):
    run = import_body(read_body(body("one")), caller=callers("admin"))
    undo_import(run.id, caller=callers("admin"))
    with pytest.raises(Conflict, match="undone"):
        undo_import(run.id, caller=callers("admin"))


def test_needs_the_permissions(callers):
    run = import_body(read_body(body("one")), caller=callers("admin"))
    with pytest.raises(NoAccess):
        undo_import(run.id, caller=callers("reader"))
    with pytest.raises(NotFound):
        undo_import(run.id, caller=callers("outsider"))
