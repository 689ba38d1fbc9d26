"""An import can be undone as long as nothing it wrote has changed since."""

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict, InvalidOperation, NoAccess, NotFound
from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.plan.import_plan import read_flags
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import add_dependency
from projects.models import Dependency, Flag, FlagEnvironment, FlagLastSeen, Segment, Strategy
from tests.support.import_bodies import body, strategy, switch

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


def test_puts_changed_flags_back_and_deletes_created_ones(callers):
    import_body(read_body(rich("10")), caller=callers("admin"))
    before = state("one", "two")
    document = rich("20")
    document["data"]["features"].append({"name": "three"})
    run = import_body(read_body(document), caller=callers("admin"))
    assert state("one") != {"one": before["one"]}

    undone = undo_import(run.id, caller=callers("admin"))

    assert undone.state == ImportRun.State.UNDONE
    assert state("one", "two") == before
    assert not Flag.objects.filter(name="three").exists()
    kinds = list(AuditEvent.objects.order_by("-id").values_list("type", "feature")[:3])
    assert kinds == [("import-undone", None), ("import-undone", "one"), ("feature-deleted", "three")]


def test_the_file_can_be_imported_again_afterwards(callers):
    run = import_body(read_body(rich("10")), caller=callers("admin"))
    undo_import(run.id, caller=callers("admin"))
    second_run = import_body(read_body(rich("10")), caller=callers("admin"))
    assert second_run.counts["create"] == 2


@pytest.mark.parametrize("use", ["evaluated", "favorite", "changed and changed back"])
def test_a_created_flag_that_somebody_has_used_is_archived(use, callers, api):
    run = import_body(read_body(body("one", "two")), caller=callers("admin"))
    flag = Flag.objects.get(name="one")
    if use == "evaluated":
        FlagLastSeen.objects.create(flag=flag, environment="development", seen_at=timezone.now())
    elif use == "favorite":
        assert api["admin"].post("/api/admin/projects/shop/features/one/favorites").status_code == 200
    else:
        for switched in ("on", "off"):
            path = f"/api/admin/projects/shop/features/one/environments/production/{switched}"
            assert api["admin"].post(path).status_code == 200
        Strategy.objects.filter(flag=flag).delete()
    undo_import(run.id, caller=callers("admin"))
    assert list(Flag.objects.values_list("name", flat=True)) == ["one"]
    assert Flag.objects.get().is_archived


@pytest.fixture
def without_parent(callers):
    """An import that took ``one`` its parent ``two``."""
    import_body(read_body(rich("10")), caller=callers("admin"))
    document = body("one", dependencies=[{"feature": "one", "dependencies": []}])
    return import_body(read_body(document), caller=callers("admin"))


def check_refused(run, caller, match):
    before = state("one", "two")
    with pytest.raises(Conflict, match=match), transaction.atomic():
        undo_import(run.id, caller=caller)
    assert state("one", "two") == before
    assert ImportRun.objects.get(id=run.id).state == ImportRun.State.DONE


def test_refuses_a_parent_that_was_archived_since(without_parent, callers):
    archive_flags("shop", ["two"], caller=callers("admin"))
    check_refused(without_parent, callers("admin"), "two is archived; a parent must be active")


def test_refuses_a_parent_that_was_moved_since(without_parent, callers):
    Flag.objects.filter(name="two").update(project="default")
    check_refused(without_parent, callers("admin"), "two is in project default; a parent must be in the same")


def test_refuses_a_parent_that_was_given_a_parent_since(without_parent, callers):
    import_body(read_body(body("top")), caller=callers("admin"))
    add_dependency("shop", "two", {"feature": "top"}, caller=callers("admin"))
    check_refused(without_parent, callers("admin"), "two itself depends on top")


def test_refuses_a_parent_for_a_flag_that_is_one_since(without_parent, callers):
    import_body(read_body(body("child")), caller=callers("admin"))
    add_dependency("shop", "child", {"feature": "one"}, caller=callers("admin"))
    check_refused(without_parent, callers("admin"), "child depends on one")


def test_refuses_to_revive_a_flag_whose_parent_was_archived_since(callers):
    import_body(read_body(rich("10")), caller=callers("admin"))
    document = rich("10")
    document["data"]["features"] = [{"name": "one", "archived": True}, {"name": "two"}]
    document["data"]["featureEnvironments"] = []
    run = import_body(read_body(document), caller=callers("admin"))
    ImportRun.objects.filter(id=run.id).update(after={"one": run.after["one"]})
    archive_flags("shop", ["two"], caller=callers("admin"))
    check_refused(run, callers("admin"), "two is archived")


def test_refuses_a_segment_that_moved_to_another_project_since(callers):
    segment = Segment.objects.create(name="vip")
    used = body("one", segments=[{"id": 7, "name": "vip"}], featureStrategies=[strategy("one", segments=[7])])
    import_body(read_body(used), caller=callers("admin"))
    run = import_body(read_body(body("one")), caller=callers("admin"))
    Segment.objects.filter(id=segment.id).update(project="default")
    with pytest.raises(Conflict, match=f"it needs segment {segment.id}, no longer available in shop"):
        undo_import(run.id, caller=callers("admin"))


def test_brings_back_what_the_import_archived(callers):
    import_body(read_body(body("one")), caller=callers("admin"))
    document = body("one")
    document["data"]["features"][0]["archived"] = True
    run = import_body(read_body(document), caller=callers("admin"))
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
