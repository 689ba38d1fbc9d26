"""Impact metrics are kept by minute for two days, by hour for thirty, and not more of them than the limit."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from projects.applications.impact_metrics import Sample, clean_points, make_series, write_samples
from projects.models import ImpactPoint

pytestmark = pytest.mark.django_db
NOW = datetime.fromisoformat("2026-11-24T08:00:30+00:00")


def write(sample: Sample, at: datetime, name: str = "m") -> None:
    with connection.cursor() as cursor:
        write_samples(cursor, {make_series(name, {}): sample}, now=at)


def points() -> list[tuple[str, bool, float, int]]:
    rows = ImpactPoint.objects.order_by("at")
    return [(f"{row.at:%d %H:%M}", row.is_hour, row.value, row.count) for row in rows]


def test_reports_of_a_minute_are_added_up():
    for seconds in (0, 20, 40):
        write(Sample("counter", "", 2.0), NOW + timedelta(seconds=seconds))
    assert points() == [("24 08:00", False, 4.0, 0), ("24 08:01", False, 2.0, 0)]


def test_a_gauge_is_what_was_last_reported():
    for value in (3.0, 5.0):
        write(Sample("gauge", "", value), NOW)
    assert points() == [("24 08:00", False, 5.0, 0)]


def test_minutes_become_hours_and_hours_end():
    histogram = Sample("histogram", "", 1.5, 2, {"1": 1, "inf": 2})
    for minutes in (0, 1, 70):
        write(histogram, NOW + timedelta(minutes=minutes))
        write(Sample("gauge", "", float(minutes)), NOW + timedelta(minutes=minutes), "g")
    clean_points(NOW + timedelta(days=2, minutes=90))
    hour = ImpactPoint.objects.get(name="m", is_hour=True)
    assert (hour.value, hour.count, hour.buckets) == (3.0, 4, {"1": 2, "inf": 4})
    assert ImpactPoint.objects.get(name="g", is_hour=True).value == 0.5
    assert ImpactPoint.objects.filter(is_hour=False).count() == 2
    clean_points(NOW + timedelta(days=31))
    assert not ImpactPoint.objects.exists()


def test_the_oldest_go_beyond_the_limit(settings):
    settings.IMPACT_POINTS_LIMIT = 2
    for minutes in range(5):
        write(Sample("counter", "", 1.0), NOW + timedelta(minutes=minutes))
    clean_points(NOW + timedelta(minutes=5))
    assert [point[0] for point in points()] == ["24 08:03", "24 08:04"]
