"""A flag's insights: its evaluations over 24 hours, 30 and 90 days, by application and variant, with its changes."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.lists.charts import make_timeline
from projects.flags.insights.evaluations import Count
from projects.flags.insights.queries import MAX_PARTS
from projects.models import Application, UsageDay, UsageHour
from tests.support.page_text import page_text

PAGE = "/projects/shop/features/cart/insights/"


def reported(flag, *, ago=timedelta(), application="web", yes=3, no=1, variants=None):
    row, _ = Application.objects.get_or_create(name=application, defaults={"created_at": timezone.now()})
    hour = (timezone.now() - ago).replace(minute=0, second=0, microsecond=0)
    UsageHour.objects.create(
        flag_id=flag.pk, environment="production", hour=hour, application_id=row.pk, yes=yes, no=no,
        variants=variants or {},
    )  # fmt: skip


def on_day(flag, days, **counts):
    day = (timezone.now().astimezone(UTC) - timedelta(days=days)).date()
    UsageDay.objects.create(flag_id=flag.pk, environment="production", day=day, **counts)


def test_without_evaluations_it_says_so(browse, cart):
    page = page_text(browse("reader").get(PAGE))
    assert page.count("No evaluations in 24 hours.") == 2
    assert "No evaluations in 90 days." in page_text(browse("reader").get(f"{PAGE}?period=90d"))


def test_one_hour_is_drawn_with_its_numbers(browse, cart):
    reported(cart, yes=1200, no=300)
    answer = browse("reader").get(PAGE)

    assert "1,500 evaluations in 24 hours, 1,200 on" in page_text(answer)
    assert "1,200 on, 300 off</title>" in answer.text
    assert answer.text.count('<rect class="y"') == 1


def test_periods_reach_30_and_90_days_back(browse, cart):
    reported(cart)
    on_day(cart, 20, yes=100, no=0)
    on_day(cart, 80, yes=1000, no=0)

    totals = {
        period: page_text(browse("reader").get(f"{PAGE}?period={period}"))
        for period in ("24h", "30d", "90d", "?")
    }
    assert "4 evaluations in 24 hours" in totals["24h"]
    assert "104 evaluations in 30 days" in totals["30d"]
    assert "1,104 evaluations in 90 days" in totals["90d"]
    assert "4 evaluations in 24 hours" in totals["?"]
    text = browse("reader").get(f"{PAGE}?period=90d").text
    assert '<a href="?period=90d" aria-current="true">' in text


def test_applications_and_variants_split_the_evaluations(browse, cart):
    reported(cart, application="web", yes=75, no=0, variants={"blue": 60, "red": 15})
    reported(cart, application="ios", yes=25, no=0)
    page = page_text(browse("reader").get(PAGE))

    assert "web7575 %ios2525 %" in page
    assert "blue6080 %red1520 %" in page


def test_very_many_applications_are_added_up(browse, cart):
    for number in range(MAX_PARTS + 5):
        reported(cart, application=f"app-{number:02}", yes=10, no=0)
    page = page_text(browse("reader").get(PAGE))

    assert "app-11" in page
    assert "app-12" not in page
    assert "others50" in page


def test_changes_are_marked_where_they_were_made(browse, cart):
    reported(cart)
    for environment, kind in (
        ("production", "feature-environment-enabled"),
        ("development", "feature-strategy-add"),
    ):
        AuditEvent.objects.create(
            type=kind, project="shop", feature="cart", environment=environment, actor_name="Ada"
        )
    text = browse("reader").get(PAGE).text
    assert text.count('<g class="change">') == 1
    assert "UTC, Ada: " in text


def test_it_is_only_for_readers_of_the_project(browse, cart):
    assert browse("outsider").get(PAGE).status_code == 404
    assert browse("reader").get("/projects/shop/features/none/insights/").status_code == 404
    assert 'href="insights/"' in browse("reader").get("/projects/shop/features/cart/").text


@pytest.mark.parametrize(("most", "top"), [(0, 2), (1, 2), (3, 5), (7, 10), (11, 20), (10**9 + 1, 2 * 10**9)])
def test_axes_end_at_round_numbers(most, top):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    chart = make_timeline([Count(start, most)], start + timedelta(hours=1), [])
    assert chart.levels[0] == ("0%", top)
    assert chart.levels[-1] == ("100%", 0)


def test_a_change_outside_of_the_period_has_no_mark():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    hours = [Count(start + timedelta(hours=number), 1) for number in range(4)]
    changes = [(start - timedelta(hours=1), "before"), (start + timedelta(hours=1), "in it")]
    chart = make_timeline(hours, start + timedelta(hours=4), changes)
    assert chart.marks == [("25.00%", "in it")]
