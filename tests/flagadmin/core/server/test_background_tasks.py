"""Periodic tasks of `manage.py serve` run when due, on one server at a time, and survive failures."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection

from flagadmin.core.db.transactions import Lock
from flagadmin.core.server import background_tasks
from flagadmin.management.commands import serve
from tests.support.metrics import Values


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "_periodic", [])
    monkeypatch.setattr(background_tasks, "close_old_connections", lambda: None)


@pytest.mark.django_db
def test_tasks_run_when_they_are_due() -> None:
    ran: list[str] = []
    background_tasks.run_every(timedelta(seconds=10), lambda: ran.append("ten"))
    background_tasks.run_every(timedelta(seconds=30), lambda: ran.append("thirty"))
    for now in (100, 105, 110, 120, 130):
        background_tasks.run_due_tasks(now)
    assert ran == ["ten", "thirty", "ten", "ten", "ten", "thirty"]


@pytest.mark.django_db
def test_a_failure_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []
    background_tasks.run_every(timedelta(seconds=10), lambda: 1 / 0)
    background_tasks.run_every(timedelta(seconds=10), lambda: ran.append("after"))
    background_tasks.run_due_tasks(100)
    assert ran == ["after"]
    assert "Periodic task failed" in caplog.text


@pytest.mark.django_db
def test_leaves_it_to_another_server_that_is_at_it() -> None:
    ran: list[str] = []
    background_tasks.run_every(timedelta(seconds=10), lambda: ran.append("here"))
    elsewhere = connection.copy()
    try:
        with elsewhere.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [Lock.MAINTENANCE])
            background_tasks.run_due_tasks(100)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [Lock.MAINTENANCE])
    finally:
        elsewhere.close()
    background_tasks.run_due_tasks(110)
    assert ran == ["here"]


@pytest.mark.django_db
def test_runs_are_counted(counted: Callable[[], Values]) -> None:
    def good() -> None: ...

    def bad() -> None:
        raise ValueError

    for task in (good, bad):
        background_tasks.run_every(timedelta(seconds=10), task)
    background_tasks.run_due_tasks(100)
    values = counted()

    def value(name: str, task: Callable[[], None], more: str = "") -> float | None:
        label = f'task="{task.__module__}.{task.__qualname__}"'
        return values.get(f"flagadmin_background_task_{name}{{{more}{label}}}")

    process = 'process="main-1",'
    assert (value("failures_total", good), value("failures_total", bad)) == (None, 1)
    assert (value("seconds_count", good), value("seconds_count", bad)) == (1, 1)
    assert value("last_success_timestamp_seconds", good, process) > 1.7e9
    assert value("last_success_timestamp_seconds", bad, process) is None


def test_a_process_of_tasks_that_ends_again_and_again_is_started_after_longer_and_longer_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, started = 1_000, list[int]()

    class Ending:
        exitcode = 1

        def __init__(self, target: object) -> None: ...

        def start(self) -> None:
            started.append(now - 1_000)

        def is_alive(self) -> bool:
            return 40 < now - 1_000 < 200

    monkeypatch.setattr(background_tasks.multiprocessing, "Process", Ending)
    monkeypatch.setattr(background_tasks.time, "monotonic", lambda: now)
    tasks = background_tasks.MaintenanceProcess()
    for _ in range(210):
        tasks.keep()
        now += 1
    assert started == [0, 1, 2, 4, 8, 16, 32, 200, 201, 202, 204, 208]


@pytest.mark.parametrize("failing", ["tasks", "output"])
def test_serve_goes_on_without_room_for_a_process_or_for_output(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    class Tasks:
        keep = fail if failing == "tasks" else lambda _: None
        end = lambda _: None  # noqa: E731

    class Looping:
        interrupt_signal = False
        main_loop_interrupt: serve.Wakeup

        def serve(self, target_loader: object) -> None:
            for _ in range(3):
                self.main_loop_interrupt.set()
                self.main_loop_interrupt.wait()

    command = serve.Command()
    monkeypatch.setattr(background_tasks, "MaintenanceProcess", Tasks)
    monkeypatch.setattr(serve, "accepts", lambda _: True)
    monkeypatch.setattr(command.stdout, "write", fail)
    command.serve(Looping(), "Serving.", ("127.0.0.1", 1))
    assert caplog.text.count("flagadmin serves on") == (3 if failing == "tasks" else 1)
