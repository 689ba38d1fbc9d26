"""Counts of evaluations by hour, by day and in total, from what SDKs reported."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Sum

from projects.applications.cleanup import clean_usage
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count as Reported
from projects.applications.usage_report import FlagUse, UsageReport
from projects.flags.insights.evaluations import (
    read_evaluations_by_day,
    read_evaluations_by_hour,
    read_last_evaluations,
)
from projects.models import Environment, Flag, UsageDay, UsageHour, UsageTotal
from tests.support.flags import make_flag

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def report(
    flag: str, at: datetime = NOW, *, now: datetime | None = None, environment: str = "development",
    application: str = "web", yes: int = 0, no: int = 0, **variants: int,
) -> None:  # fmt: skip
    told = UsageReport()
    told.add_count(FlagUse(application, flag, environment), at, Reported(yes, no, variants), now=now or at)
    store_report(told, now=now or at)


def test_the_last_24_hours_have_a_count_each(cart: Flag, django_assert_num_queries) -> None:
    report("cart", yes=5, no=2, blue=3, green=2)
    report("cart", yes=1, application="app", blue=1)
    report("cart", NOW - 23 * HOUR, yes=7)
    report("cart", NOW - 24 * HOUR, yes=100)
    report("cart", environment="production", no=9)

    with django_assert_num_queries(1):
        evaluations = read_evaluations_by_hour(cart.pk, ["development", "production"], now=NOW)

    here = evaluations["development"]
    assert [count.at for count in here.counts[::23]] == [
        datetime(2026, 11, 20, 15, tzinfo=UTC),
        datetime(2026, 11, 21, 14, tzinfo=UTC),
    ]
    assert len(here.counts) == 24
    assert (here.counts[-1].yes, here.counts[-1].no, here.counts[0].yes) == (6, 2, 7)
    assert (here.yes, here.no, here.total) == (13, 2, 15)
    assert here.variants == {"blue": 4, "green": 2}
    assert evaluations["production"].percent_on == 0
    assert evaluations["production"].total == 9


def test_nothing_reported_is_all_zero(cart: Flag) -> None:
    evaluations = read_evaluations_by_hour(cart.pk, ["development"], now=NOW)["development"]
    assert (len(evaluations.counts), evaluations.total, evaluations.percent_on, evaluations.variants) == (
        24,
        0,
        None,
        {},
    )


def test_days_add_deleted_hours_to_those_that_are_kept(cart: Flag, django_assert_num_queries) -> None:
    for back in range(4):
        for hour in (0, 3):
            moment = NOW - back * DAY - hour * HOUR
            report("cart", moment, yes=1, no=2, blue=1)

    before = read_evaluations_by_day(cart.pk, ["development"], now=NOW)["development"]
    clean_usage(now=NOW)
    with django_assert_num_queries(1):
        after = read_evaluations_by_day(cart.pk, ["development"], now=NOW)["development"]

    assert (UsageHour.objects.count(), UsageDay.objects.count()) == (5, 2)
    assert before == after
    assert [(count.yes, count.no) for count in after.counts[-5:]] == [(0, 0)] + [(2, 4)] * 4
    assert after.variants == {"blue": 8}
    assert after.counts[-1].at == datetime(2026, 11, 21, tzinfo=UTC)
    assert len(after.counts) == 30


def test_hours_of_one_day_deleted_in_parts_are_all_counted(cart: Flag, monkeypatch) -> None:
    monkeypatch.setattr("projects.applications.cleanup.ROWS_PER_TRANSACTION", 1)
    old = NOW - 3 * DAY
    report("cart", old, yes=1, blue=1)
    report("cart", old - HOUR, yes=2, blue=1, green=1)
    report("cart", old - HOUR, yes=4, application="app")

    assert clean_usage(now=NOW).hours == 3

    (day,) = UsageDay.objects.all()
    assert (day.yes, day.no, day.variants) == (7, 0, {"blue": 2, "green": 1})


def test_a_day_keeps_as_many_variants_as_an_hour(cart: Flag, settings) -> None:
    settings.REPORT_VARIANTS_LIMIT = 2
    for hour, name in enumerate(("rare", "common", "usual")):
        report("cart", NOW - 3 * DAY + hour * HOUR, yes=1, **{name: hour + 1})
    clean_usage(now=NOW)
    assert UsageDay.objects.get().variants == {"common": 2, "usual": 3}


def test_days_go_after_90_days_and_with_their_flag_and_environment(cart: Flag) -> None:
    other = make_flag("other")
    for flag in ("cart", "other"):
        report(flag, NOW - 3 * DAY, yes=1)
        report(flag, NOW - 3 * DAY, yes=1, environment="production")
    clean_usage(now=NOW)
    assert UsageDay.objects.count() == 4

    other.delete()
    assert UsageDay.objects.count() == 2
    cart.environments.all().delete()
    Environment.objects.get(name="production").projects.clear()
    Environment.objects.filter(name="production").delete()
    assert UsageDay.objects.count() == 1
    clean_usage(now=NOW + 89 * DAY)
    assert UsageDay.objects.count() == 0


def test_hours_of_a_deleted_flag_are_added_to_no_day(cart: Flag) -> None:
    report("cart", NOW - 3 * DAY, yes=1)
    UsageHour.objects.update(flag_id=cart.pk + 1000)
    assert clean_usage(now=NOW).hours == 1
    assert UsageDay.objects.count() == 0


def test_last_evaluated_by_environment(cart: Flag, django_assert_num_queries) -> None:
    other = make_flag("other")
    report("cart", NOW - DAY)
    report("cart", NOW - DAY, yes=1)
    report("cart", NOW, environment="production", yes=1)
    with django_assert_num_queries(1):
        times = read_last_evaluations([cart.pk, other.pk])
    assert times == {cart.pk: {"development": NOW - DAY, "production": NOW}, other.pk: {}}


def test_totals_follow_late_reports_and_go_after_two_days(cart: Flag) -> None:
    report("cart", NOW, yes=1)
    clean_usage(now=NOW)
    report("cart", NOW - HOUR, now=NOW, yes=2)
    report("cart", NOW, yes=4)
    clean_usage(now=NOW)
    assert UsageTotal.objects.aggregate(total=Sum("yes"))["total"] == 7
    clean_usage(now=NOW + 3 * DAY)
    assert not UsageTotal.objects.exists()
