"""Charts of impact metrics, of a flag and of the installation: by API, and on their pages."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from projects.applications.impact_metrics import Sample, make_series, write_samples
from releases.models import MetricChart
from releases.safeguards.chart import Scale, _points, draw_metric
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
OF_FLAG = "/api/admin/projects/shop/features/cart/impact-metrics/config"
OF_ALL = "/api/admin/impact-metrics/config"
CHART = {"metricName": "errors", "timeRange": "hour", "aggregationMode": "avg", "yAxisMin": "zero"}


@pytest.fixture
def cart(shop: Any) -> Any:
    return live_flag("cart")


def report(*samples: Sample) -> None:
    """One every ten minutes, the last one now."""
    with connection.cursor() as cursor:
        for index, sample in enumerate(reversed(samples)):
            now = timezone.now() - timedelta(minutes=10 * index)
            write_samples(cursor, {make_series("errors", {}): sample}, now=now)


@pytest.mark.parametrize(("url", "who"), [(OF_FLAG, "owner"), (OF_ALL, "admin")])
def test_they_are_added_changed_and_removed(api, cart, url, who):
    made = api[who].post(url, CHART, format="json")
    assert made.status_code == 200, made.content
    assert made.json() == CHART | {
        "id": MetricChart.objects.get().pk, "title": "", "displayName": "errors", "labelSelectors": {},
        "type": "unknown", "step": "1m", "mode": "write",
    }  # fmt: skip
    report(Sample("gauge", "", 1.0))
    changed = api[who].post(url, CHART | {"id": made.json()["id"], "title": "Errors"}, format="json").json()
    assert (changed["title"], changed["displayName"], changed["type"]) == ("Errors", "Errors", "gauge")
    assert api["reader"].get(url).json() == {"configs": [changed | {"mode": "read"}]}
    assert api[who].delete(f"{url}/{changed['id']}").status_code == 204
    assert api[who].delete(f"{url}/{changed['id']}").status_code == 404
    events = AuditEvent.objects.filter(type__startswith="impact-metrics-config").order_by("pk")
    assert [event.feature for event in events] == ["cart" if url == OF_FLAG else None] * 3


def test_those_of_a_flag_are_not_those_of_the_installation(api, cart):
    key = api["owner"].post(OF_FLAG, CHART, format="json").json()["id"]
    assert api["admin"].get(OF_ALL).json() == {"configs": []}
    assert api["admin"].delete(f"{OF_ALL}/{key}").status_code == 404


@pytest.mark.parametrize("odd", [{"timeRange": "year"}, {"aggregationMode": "max"}, {"metricName": ""}])
def test_odd_values_are_refused(api, cart, odd):
    assert api["owner"].post(OF_FLAG, CHART | odd, format="json").status_code == 400


def test_there_are_few(api, cart):
    for _ in range(20):
        assert api["owner"].post(OF_FLAG, CHART, format="json").status_code == 200
    assert api["owner"].post(OF_FLAG, CHART, format="json").status_code == 400


def test_a_chart_begins_at_its_lowest_value_or_at_zero(cart):
    report(*(Sample("gauge", "", value) for value in (40.0, 50.0, 60.0)))
    chart = MetricChart(metric="errors", aggregation="avg", time_range="hour", y_axis="auto")
    drawn = draw_metric(chart, timezone.now())
    assert drawn is not None
    assert (drawn.bottom, drawn.top, drawn.lines[0].latest) == ("38", "62", "60")
    chart.y_axis = "zero"
    drawn = draw_metric(chart, timezone.now())
    assert drawn is not None
    assert (drawn.bottom, drawn.top) == ("", "66")


def test_a_line_ends_with_the_latest_report():
    """A part of a long chart has hours: what was reported in it is not drawn up to now."""
    assert _points([1.0, None, 2.0], Scale(0.0, 4.0), 97.5) == "0.0,75.0 97.5,50.0"


def test_a_chart_draws_percentiles(cart):
    buckets = {"0.1": 90, "0.5": 100, "+Inf": 100}
    report(*(Sample("histogram", "", 9.0, 100, buckets) for _ in range(2)))
    chart = MetricChart(metric="errors", aggregation="p95", time_range="day")
    drawn = draw_metric(chart, timezone.now())
    assert drawn is not None
    assert drawn.lines[0].latest == "0.3"


@pytest.mark.parametrize(
    ("page", "who"),
    [("/projects/shop/features/cart/impact-metrics/", "owner"), ("/impact-metrics/", "admin")],
)
def test_the_pages_draw_add_and_remove(browse, cart, page, who):
    report(Sample("gauge", "", 3.0), Sample("gauge", "", 4.0))
    form = {"metric": "errors", "title": "Failures", "aggregation": "avg", "range": "week", "axis": "auto"}
    assert browse(who).post(page, form).status_code == 302
    text = page_text(browse("reader").get(page))
    assert "average of errors, last week" in text
    assert "Add a chart" not in text
    assert browse("reader").post(page, form).status_code == 403
    assert browse(who).post(page, form | {"range": "year"}).status_code == 400
    assert browse(who).post(page, {"remove": MetricChart.objects.get().pk}).status_code == 302
    assert "No charts yet." in page_text(browse(who).get(page))
