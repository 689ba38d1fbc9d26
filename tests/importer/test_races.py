"""Imports concurrent with other imports, deletion and archiving, and killed imports, on real connections."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import orjson
import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import AppError
from groups.access import Caller
from importer.apply.execute import Progress, import_body, write_progress
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.runs import access_run, confirm_run, create_run
from projects.deletion.execute import delete_project
from projects.flags.archive.actions import archive_flags
from projects.models import Flag, FlagEnvironment, Project, Segment, Strategy
from tests.support.cast import make_project
from tests.support.import_bodies import body, strategy, switch
from tests.support.racing import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
CALLER = Caller.system()
ROUNDS = 6


def many(prefix: str, project: str = "shop", rollout: str = "10") -> Any:
    names = [f"{prefix}-{index}" for index in range(40)]
    return read_body(
        body(
            *names,
            project=project,
            featureStrategies=[strategy(name, parameters={"rollout": rollout}) for name in names],
            featureEnvironments=[switch(name) for name in names],
        )
    )


def importing(sent: Any) -> Callable[[], ImportRun]:
    return lambda: import_body(sent, caller=CALLER)


def test_the_same_new_flags_twice(shop: Project) -> None:
    for number in range(ROUNDS):
        results = together(*[importing(many(f"r{number}"))] * 2)
        assert sorted(run.counts["create"] for run in results) == [0, 40]
        assert sorted(run.counts["same"] for run in results) == [0, 40]
    assert Flag.objects.count() == Strategy.objects.count() == 40 * ROUNDS


def test_different_contents_end_as_one_of_them(shop: Project) -> None:
    for _ in range(ROUNDS):
        together(importing(many("one", rollout="10")), importing(many("one", rollout="20")))
        assert Strategy.objects.count() == 40
        assert len(set(Strategy.objects.values_list("parameters__rollout", flat=True))) == 1


def test_the_same_names_into_two_projects(shop: Project) -> None:
    for number in range(ROUNDS):
        results = together(importing(many(f"r{number}")), importing(many(f"r{number}", project="default")))
        refused = [result for result in results if isinstance(result, AppError)]
        assert [error.status for error in refused] == [400]
        assert "already exists" in refused[0].details[0].message
        owners = Flag.objects.filter(name__startswith=f"r{number}-").values_list("project_id", flat=True)
        assert len(set(owners)) == 1
        assert len(owners) == 40


def test_the_same_new_words_into_two_projects(shop: Project) -> None:
    words = {"contextFields": [{"name": "tier"}], "segments": [{"id": 1, "name": "vip", "constraints": []}]}
    results = together(
        importing(read_body(body("a", **words))),
        importing(read_body(body("b", project="default", **words))),
    )
    assert all(isinstance(result, ImportRun) for result in results), results


def test_a_segment_that_comes_while_the_plan_is_made(shop: Project) -> None:
    """Between the statement that reads all segments and the next one."""

    def create() -> None:
        Segment.objects.create(name="vip", constraints=[])
        connection.close()

    def meanwhile(execute: Any, sql: Any, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if 'FROM "projects_segment"' in sql and not creating.ident:
            creating.start()
            creating.join()
        return result

    creating = threading.Thread(target=create)
    listed = [{"id": 1, "name": "vip", "constraints": []}]
    used = [strategy("a", segments=[1])]
    with connection.execute_wrapper(meanwhile):
        import_body(read_body(body("a", segments=listed, featureStrategies=used)), caller=CALLER)
    assert creating.ident is not None
    assert list(Strategy.objects.get().segments.values_list("name", flat=True)) == ["vip"]


def test_against_the_deletion_of_its_project() -> None:
    for number in range(ROUNDS):
        project = f"gone-{number}"
        make_project(project)
        imported, deleted = together(
            importing(many(project, project=project)),
            lambda name=project: delete_project(name, caller=CALLER),
        )
        assert isinstance(imported, AppError) != isinstance(deleted, AppError)
        exists = Project.objects.filter(id=project).exists()
        assert exists == isinstance(imported, ImportRun)
        assert Flag.objects.filter(project_id=project).count() == (40 if exists else 0)


def test_against_archiving(shop: Project) -> None:
    for number in range(ROUNDS):
        import_body(many(f"r{number}"), caller=CALLER)
        imported, archived = together(
            importing(many(f"r{number}", rollout="20")),
            lambda name=f"r{number}-0": archive_flags("shop", [name], caller=CALLER),
        )
        assert Flag.objects.get(name=f"r{number}-0").is_archived
        assert len(archived) == 1
        assert (imported.counts["change"], imported.counts["skip"]) in {(40, 0), (39, 1)}


class Killed:
    """Ends the import's database connection when the strategies are written, as a crash would."""

    def __init__(self, write: Progress, other: BaseDatabaseWrapper) -> None:
        self.write, self.other = write, other
        self.seen: list[Any] = []

    def __call__(self, step: str, done: int, total: int) -> None:
        self.write(step, done, total)
        if step == "strategies":
            self.seen = [self.poll(), Flag.objects.count()]
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                [pid] = cursor.fetchone()
            with self.other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    def poll(self) -> Any:
        """What another connection sees meanwhile."""
        with self.other.cursor() as cursor:
            cursor.execute("SELECT state, step, progress_done, progress_total FROM importer_importrun")
            return cursor.fetchone()


def test_killed_midway_nothing_of_it_exists_and_it_can_be_confirmed_again(shop: Project) -> None:
    sent = body("one", featureStrategies=[strategy("one")], featureEnvironments=[switch("one")])
    run = create_run(orjson.dumps(sent), caller=CALLER)
    other = connection.copy()
    with closing(other), write_progress(run.id) as write:
        killed = Killed(write, other)
        with pytest.raises(OperationalError):
            confirm_run(run, caller=CALLER, fingerprint=run.fingerprint, progress=killed)
    connection.close()
    assert killed.seen == [("running", "strategies", 1, 1), 1]
    assert not any(table.objects.exists() for table in (Flag, FlagEnvironment, Strategy, AuditEvent))
    pending_run = access_run(CALLER, run.id)
    assert pending_run.state == ImportRun.State.PENDING
    assert (
        confirm_run(pending_run, caller=CALLER, fingerprint=pending_run.fingerprint).state
        == ImportRun.State.DONE
    )
