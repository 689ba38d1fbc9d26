"""Usage reports concurrent with moves and deletions cause no deadlocks and lose no data."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from flagadmin.core.db import transactions
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NotFound
from groups.access import Caller
from projects.applications.cleanup import clean_usage
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count, FlagUse, UsageReport
from projects.flags.archive.actions import remove_flags
from projects.models import ApplicationInstance, Flag, FlagUsage, ProjectApplication, UsageHour
from sdk.reports import batcher as report_batcher_module
from sdk.reports.batcher import ReportBatcher
from tests.support.applications import report_of
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.live_server import PATIENCE, wait_until
from tests.support.racing import together

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS, ROUNDS = 6, 15
APPS = [f"app-{n}" for n in range(5)]
FLAGS = [f"flag-{n}" for n in range(6)]


def writer(number: int, now: datetime) -> Callable[[], None]:
    def write() -> None:
        order = random.Random(number)
        for round_number in range(ROUNDS):
            apps, flags = order.sample(APPS, len(APPS)), order.sample(FLAGS, len(FLAGS))
            store_report(report_of(apps, flags, f"{number}-{round_number}", now))

    return write


def test_a_burst_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first try: nobody waits in a circle."""
    monkeypatch.setattr(transactions, "ATTEMPTS", 1)
    for name in FLAGS:
        make_flag(name, "default")
    now = timezone.now()
    assert together(*(writer(number, now) for number in range(WRITERS))) == [None] * WRITERS
    posts = WRITERS * ROUNDS
    assert UsageHour.objects.aggregate(Sum("yes"))["yes__sum"] == posts * len(APPS) * len(FLAGS)
    assert {row.variants["red"] for row in UsageHour.objects.all()} <= set(range(1, posts + 1))
    assert ApplicationInstance.objects.count() == posts * len(APPS)
    assert set(ProjectApplication.objects.values_list("name", "instance_count")) == {
        (app, posts) for app in APPS
    }


def test_reports_beside_moves_and_deletions() -> None:
    make_project("other")
    for name in FLAGS:
        make_flag(name, "default")
    now = timezone.now()
    works = [*(writer(number, now) for number in range(3)), move_flags, delete_flags]
    assert together(*works) == [None] * len(works)
    expected = {
        (flag.project_id, app)
        for app in APPS
        for flag in Flag.objects.filter(name__in=FLAGS)
        if FlagUsage.objects.filter(flag_id=flag.pk).exists()
    }
    assert set(ProjectApplication.objects.values_list("project_id", "name")) == expected
    clean_usage()  # a flag that goes while its usage is noted again may leave a row behind
    known = set(Flag.objects.values_list("pk", flat=True))
    assert set(FlagUsage.objects.values_list("flag_id", flat=True)) <= known


def move_flags() -> None:
    for round_number in range(ROUNDS):
        for name in FLAGS[:3]:
            Flag.objects.filter(name=name).update(project="other" if round_number % 2 == 0 else "default")


def delete_flags() -> None:
    for name in FLAGS[4:]:
        delete_flag(name)


@transactional
def delete_flag(name: str) -> None:
    locked = Flag.objects.select_for_update(no_key=True).filter(name=name)
    remove_flags(list(locked), caller=Caller.system())


def test_an_old_report_is_not_lost_to_a_newer_one() -> None:
    flag = make_flag("flag", "default")
    now = timezone.now()
    for back in (0, 90, 45):
        report = UsageReport()
        at = now - timedelta(minutes=back)
        report.add_count(FlagUse("web", "flag", "development"), at, Count(1, 0), now=now)
        store_report(report)
    assert FlagUsage.objects.get(flag_id=flag.pk).last_used_at == now
    assert UsageHour.objects.aggregate(Sum("yes"))["yes__sum"] == 3


def test_posts_that_wait_share_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    make_flag("flag-0", "default")
    written = []
    release = threading.Event()

    def slowly(report: UsageReport, **waits: object) -> None:
        written.append(len(report.instances))
        assert release.wait(PATIENCE)
        store_report(report)

    monkeypatch.setattr(report_batcher_module, "store_report", slowly)
    report_batcher, now = ReportBatcher(), timezone.now()

    def submit(instance: str) -> None:
        try:
            report_batcher.submit(report_of(["web"], ["flag-0"], instance, now))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(9) as pool:
        pool.submit(submit, "i-0")
        wait_until(lambda: written)
        waiting = [pool.submit(submit, f"i-{n}") for n in range(1, 9)]
        wait_until(lambda: len(report_batcher._waiting) == len(waiting))
        release.set()
    assert written == [1, 8]
    assert ApplicationInstance.objects.count() == 9
    assert UsageHour.objects.get().yes == 9


def test_one_report_that_cannot_be_written_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def refusing(report: UsageReport, **waits: object) -> None:
        if "first" in report.strategies:
            begun.set()
            assert release.wait(PATIENCE)
        if "bad" in report.strategies:
            raise ValueError("bad")
        store_report(report)

    monkeypatch.setattr(report_batcher_module, "store_report", refusing)
    report_batcher, now = ReportBatcher(), timezone.now()

    def send(app: str) -> None:
        try:
            report_batcher.submit(report_of([app], [], "i", now))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        sent = {"first": pool.submit(send, "first")}
        assert begun.wait(PATIENCE)
        sent |= {app: pool.submit(send, app) for app in ("good", "bad", "fine")}
        wait_until(lambda: len(report_batcher._waiting) == 3)
        release.set()
    assert {app: type(each.exception()) for app, each in sent.items() if each.exception()} == {
        "bad": ValueError
    }
    assert set(ApplicationInstance.objects.values_list("application__name", flat=True)) == {
        "first",
        "good",
        "fine",
    }


def test_flags_that_are_deleted_one_after_the_other_meanwhile_spoil_no_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = [NotFound("deleted a moment ago")] * 3

    def meanwhile(report: UsageReport, **waits: object) -> None:
        if gone:
            raise gone.pop()
        store_report(report)

    monkeypatch.setattr(report_batcher_module, "store_report", meanwhile)
    make_flag("flag-0", "default")
    ReportBatcher().submit(report_of(["web"], ["flag-0"], "i", timezone.now()))
    assert FlagUsage.objects.count() == 1


def test_one_that_is_refused_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(report: UsageReport, **waits: object) -> None:
        raise NotFound("deleted a moment ago")

    monkeypatch.setattr(report_batcher_module, "store_report", never)
    with pytest.raises(NotFound):
        ReportBatcher().submit(report_of(["web"], [], "i", timezone.now()))
