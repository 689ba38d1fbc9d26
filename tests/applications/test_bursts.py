"""Many reports at once, beside people who move and delete: nothing is lost and nobody waits in a circle."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models import Sum
from django.utils import timezone

from flagadmin.transactions import transactional
from groups.access import Caller
from projects.actions.removal import remove_flags
from projects.actions.report import Count, Instance, Place, Report, Use
from projects.actions.usage import keep_report
from projects.actions.usage_cleanup import clean_usage
from projects.client_api import inbox as inboxes
from projects.client_api.inbox import Inbox
from projects.models import ApplicationInstance, Flag, FlagUsage, ProjectApplication, UsageHour
from tests.cast import make_project
from tests.sdk import make_flag

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS, ROUNDS = 6, 15
APPS = [f"app-{n}" for n in range(5)]
FLAGS = [f"flag-{n}" for n in range(6)]


def at_once(*works: Callable[[], None]) -> None:
    """Runs these in threads of their own connection, together. Raises what any of them raised."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result()


def deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def report_of(apps: list[str], flags: list[str], instance: str) -> Report:
    report = Report()
    now = timezone.now()
    for app in apps:
        report.saw(Place(app, instance, "development"), Instance(f"unleash-go:1.{instance}"), ["default"])
        for flag in flags:
            report.counted(Use(app, flag, "development"), now, Count(1, 0, {"red": 1}), now=now)
    return report


def writer(number: int) -> Callable[[], None]:
    def write() -> None:
        order = random.Random(number)
        for round_number in range(ROUNDS):
            apps, flags = order.sample(APPS, len(APPS)), order.sample(FLAGS, len(FLAGS))
            keep_report(report_of(apps, flags, f"{number}-{round_number}"))

    return write


def test_a_burst_loses_nothing() -> None:
    for name in FLAGS:
        make_flag(name)
    before = deadlocks()
    at_once(*(writer(number) for number in range(WRITERS)))
    posts = WRITERS * ROUNDS
    assert UsageHour.objects.aggregate(Sum("yes"))["yes__sum"] == posts * len(APPS) * len(FLAGS)
    assert {row.variants["red"] for row in UsageHour.objects.all()} <= set(range(1, posts + 1))
    assert ApplicationInstance.objects.count() == posts * len(APPS)
    assert set(ProjectApplication.objects.values_list("name", "instance_count")) == {
        (app, posts) for app in APPS
    }
    assert deadlocks() == before


def test_reports_beside_moves_and_deletions() -> None:
    make_project("other")
    for name in FLAGS:
        make_flag(name)
    at_once(*(writer(number) for number in range(3)), move_flags, delete_flags)
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
    flag = make_flag("flag")
    now = timezone.now()
    for back in (0, 90, 45):
        report = Report()
        at = now - timedelta(minutes=back)
        report.counted(Use("web", "flag", "development"), at, Count(1, 0), now=now)
        keep_report(report)
    assert FlagUsage.objects.get(flag_id=flag.pk).last_used_at == now
    assert UsageHour.objects.aggregate(Sum("yes"))["yes__sum"] == 3


def test_posts_that_wait_share_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    make_flag("flag-0")
    written = []
    release = threading.Event()

    def slowly(report: Report) -> None:
        written.append(len(report.instances))
        release.wait(10)
        keep_report(report)

    monkeypatch.setattr(inboxes, "keep_report", slowly)
    inbox = Inbox()
    threads = [threading.Thread(target=submit, args=(inbox, f"i-{n}")) for n in range(9)]
    for thread in threads:
        thread.start()
    while len(inbox._waiting) < 8:
        pass
    release.set()
    for thread in threads:
        thread.join()
    assert written == [1, 8]
    assert ApplicationInstance.objects.count() == 9
    assert UsageHour.objects.get().yes == 9


def submit(inbox: Inbox, instance: str) -> None:
    try:
        inbox.submit(report_of(["web"], ["flag-0"], instance))
    finally:
        connections.close_all()


def test_one_report_that_cannot_be_written_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    first = threading.Event()

    def refusing(report: Report) -> None:
        if "first" in report.strategies:
            first.wait(10)
        if "bad" in report.strategies:
            raise ValueError("bad")
        keep_report(report)

    monkeypatch.setattr(inboxes, "keep_report", refusing)
    inbox = Inbox()
    refused: list[str] = []

    def send(app: str) -> None:
        try:
            inbox.submit(report_of([app], [], "i"))
        except ValueError:
            refused.append(app)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send, args=(app,)) for app in ("first", "good", "bad", "fine")]
    for number, thread in enumerate(threads):
        thread.start()
        while number and len(inbox._waiting) < number:
            pass
    first.set()
    for thread in threads:
        thread.join()
    assert refused == ["bad"]
    assert set(ApplicationInstance.objects.values_list("application__name", flat=True)) == {
        "first",
        "good",
        "fine",
    }
