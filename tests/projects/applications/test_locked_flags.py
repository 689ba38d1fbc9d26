"""Usage reports about locked flags wait in a limited number of threads, and only for a limited time."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone

from flagadmin.core.errors import ServiceUnavailable
from projects.applications.store_report import store_report
from projects.applications.usage_report import UsageReport
from projects.models import Application, Flag, FlagUsage
from sdk.reports import batcher as report_batcher_module
from sdk.reports.batcher import ReportBatcher
from tests.support.applications import report_of
from tests.support.flags import make_flag
from tests.support.live_server import PATIENCE, wait_until
from tests.support.sdk import make_sdk

pytestmark = pytest.mark.django_db(transaction=True)

HOLD_FLAG = "SELECT 1 FROM projects_flag WHERE name = %s FOR NO KEY UPDATE"
HOLD_APPLICATION = "SELECT 1 FROM projects_application WHERE name = %s FOR NO KEY UPDATE"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@contextmanager
def held(statement: str, *parameters: Any) -> Iterator[Callable[[], None]]:
    """A second connection holds the rows, as an import does. Gives what lets them go."""
    locking = connection.copy()
    try:
        locking.set_autocommit(False)
        with locking.cursor() as cursor:
            cursor.execute(statement, parameters)
        yield locking.rollback
    finally:
        locking.close()


@pytest.fixture
def send() -> Iterator[Callable[..., Future]]:
    """``send(report_batcher, app, flag)`` in a thread of its own."""
    now = timezone.now()

    def submit(report_batcher: ReportBatcher, app: str, flags: list[str]) -> None:
        try:
            report_batcher.submit(report_of([app], flags, "i", now))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        yield lambda report_batcher, app, *flags: pool.submit(submit, report_batcher, app, list(flags))


def is_waiting_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def users_of(name: str) -> set[str]:
    applications = FlagUsage.objects.filter(flag_id=Flag.objects.get(name=name).pk).values_list(
        "application_id", flat=True
    )
    return set(Application.objects.filter(pk__in=applications).values_list("name", flat=True))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_batcher_module, "ALONE", timedelta(seconds=PATIENCE))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_batcher_module, "ALONE", timedelta(milliseconds=1))


def test_reports_do_not_wait_for_a_flag_that_is_being_imported(send, patient) -> None:
    make_flag("imported", "default")
    make_flag("free", "default")
    report_batcher = ReportBatcher()
    with held(HOLD_FLAG, "imported") as let_go:
        waiting = send(report_batcher, "web", "imported")
        wait_until(is_waiting_for_a_lock)
        for app in ("web", "cron", "ios"):
            send(report_batcher, app, "free").result(PATIENCE)
        assert users_of("free") == {"web", "cron", "ios"}
        assert not waiting.done()
        let_go()
        waiting.result(PATIENCE)
    assert users_of("imported") == {"web"}


def test_of_reports_written_together_only_those_about_the_locked_flag_wait(
    send, patient, monkeypatch
) -> None:
    make_flag("imported", "default")
    make_flag("free", "default")
    report_batcher = ReportBatcher()
    report_batcher._writing.acquire()
    sent = {
        app: send(report_batcher, app, flag)
        for app, flag in (("a", "imported"), ("b", "free"), ("c", "free"))
    }
    wait_until(lambda: len(report_batcher._waiting) == 3)
    with held(HOLD_FLAG, "imported") as let_go:
        report_batcher._writing.release()
        for app in ("b", "c"):
            sent[app].result(PATIENCE)
        assert users_of("free") == {"b", "c"}
        wait_until(is_waiting_for_a_lock)
        assert not sent["a"].done()
        let_go()
        sent["a"].result(PATIENCE)
    assert users_of("imported") == {"a"}


def test_reports_of_other_applications_do_not_wait_for_a_locked_one(send, patient, monkeypatch) -> None:
    monkeypatch.setattr(report_batcher_module, "TOGETHER", timedelta(milliseconds=1))
    make_flag("free", "default")
    make_flag("other", "default")
    report_batcher = ReportBatcher()
    for app in ("web", "cron"):
        report_batcher.submit(report_of([app], ["free"], "i", timezone.now()))
    report_batcher._writing.acquire()
    sent = {app: send(report_batcher, app, "other") for app in ("web", "cron")}
    wait_until(lambda: len(report_batcher._waiting) == 2)
    with held(HOLD_APPLICATION, "web") as let_go:
        report_batcher._writing.release()
        sent["cron"].result(PATIENCE)
        assert not sent["web"].done()
        let_go()
        sent["web"].result(PATIENCE)
    assert users_of("other") == {"web", "cron"}


def test_only_some_threads_wait(send, patient, settings) -> None:
    settings.SERVER_THREADS = 8
    make_flag("imported", "default")
    report_batcher = ReportBatcher()
    with held(HOLD_FLAG, "imported") as let_go:
        waiting = [send(report_batcher, f"app-{n}", "imported") for n in range(2)]
        wait_until(lambda: report_batcher._alone._value == 0)
        with pytest.raises(ServiceUnavailable, match="imported"):
            send(report_batcher, "one-too-many", "imported").result(PATIENCE)
        let_go()
        for each in waiting:
            each.result(PATIENCE)
    assert users_of("imported") == {"app-0", "app-1"}


def test_nobody_waits_for_long(impatient) -> None:
    make_flag("imported", "default")
    sdk = make_sdk()
    with held(HOLD_FLAG, "imported"):
        answer = sdk.count("web", ["imported"])
        assert answer.status_code == 503
        assert answer.json()["name"] == "ServiceUnavailableError"
        assert "imported" in answer.json()["message"]
        assert answer["Retry-After"]
    assert not FlagUsage.objects.exists()
    assert sdk.count("web", ["imported"]).status_code == 202
    assert users_of("imported") == {"web"}


def test_a_report_that_only_adds_up_waits_for_no_flag(impatient) -> None:
    make_flag("imported", "default")
    sdk = make_sdk()
    sdk.count("web", ["imported"])
    with held(HOLD_FLAG, "imported"):
        assert sdk.count("web", ["imported"]).status_code == 202


@pytest.mark.parametrize("lost_at", [1, 2])
def test_a_lost_connection_is_not_met_report_by_report(send, monkeypatch, lost_at: int) -> None:
    calls = []

    def lost(report: UsageReport, **waits: object) -> None:
        calls.append(report)
        if len(calls) == lost_at:
            raise OperationalError("the connection is lost")
        if len(report.strategies) > 1:
            raise ValueError("one of them is bad")
        store_report(report)

    monkeypatch.setattr(report_batcher_module, "store_report", lost)
    report_batcher = ReportBatcher()
    report_batcher._writing.acquire()
    sent = [send(report_batcher, f"app-{n}") for n in range(3)]
    wait_until(lambda: len(report_batcher._waiting) == 3)
    report_batcher._writing.release()
    assert {type(each.exception(PATIENCE)) for each in sent} == {OperationalError}
    assert len(calls) == lost_at
