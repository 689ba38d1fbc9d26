"""Periodic tasks of `manage.py serve` run when due, on one server at a time, and survive failures."""

from datetime import timedelta

import pytest
from django.db import connection

from flagadmin.server import background_tasks


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "_periodic", [])
    monkeypatch.setattr(background_tasks, "close_old_connections", lambda: None)


@pytest.mark.django_db
def test_runs_what_is_due() -> None:
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
            cursor.execute("SELECT pg_advisory_lock(%s)", [background_tasks.MAINTENANCE_LOCK])
            background_tasks.run_due_tasks(100)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [background_tasks.MAINTENANCE_LOCK])
    finally:
        elsewhere.close()
    background_tasks.run_due_tasks(110)
    assert ran == ["here"]
