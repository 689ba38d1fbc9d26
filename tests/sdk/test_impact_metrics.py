"""Impact metrics reported by SDKs are stored, limited, and available to Prometheus."""

from datetime import timedelta

import pytest
from django.utils import timezone
from yggdrasil_engine.engine import UnleashEngine

from projects.applications.impact_metrics import clean_points
from projects.models import IgnoredReport, ImpactPoint, ImpactSeries, UsageHour
from sdk.reports.api import MAX_NUMBER
from tests.support.cast import client, make_token
from tests.support.description import description
from tests.support.flags import make_flag
from tests.support.sdk import Sdk, metrics

pytestmark = pytest.mark.django_db

URL = "/internal-backstage/impact/metrics"


def post(sdk: Sdk, *impact: object, **more: object) -> None:
    body = {"appName": "web", "impactMetrics": list(impact)} | more
    assert sdk.api.post("/api/client/metrics", body).status_code == 202


def metric(name: str, kind: str, **sample: object) -> dict:
    return {"name": name, "help": "Help", "type": kind, "samples": [{"labels": {}} | sample]}


def scraped() -> list[str]:
    answer = client(make_token("admin")).get(URL)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    return answer.content.decode().splitlines()


def test_the_description_says_that_it_is_text() -> None:
    answer = description().operation("get", URL)["responses"]["200"]
    assert list(answer["content"]) == ["text/plain"]


def test_what_an_sdk_records_is_scraped(sdk: Sdk) -> None:
    engine = UnleashEngine()
    engine.define_counter("hits", "Hits")
    engine.define_gauge("temperature", "In degrees")
    engine.define_histogram("latency", "In seconds", [0.1, 1, 5])
    for value in (3, 4):
        engine.inc_counter("hits", value, {"new-checkout": "blue", "environment": "elsewhere"})
        engine.set_gauge("temperature", value + 0.5)
        engine.observe_histogram("latency", value / 2)
        post(sdk, *engine.collect_impact_metrics())
    assert scraped() == [
        "# HELP hits Hits",
        "# TYPE hits counter",
        'hits{appName="web",environment="development",new_checkout="blue"} 7.0',
        "# HELP latency In seconds",
        "# TYPE latency histogram",
        'latency_bucket{appName="web",environment="development",le="0.1"} 0',
        'latency_bucket{appName="web",environment="development",le="1.0"} 0',
        'latency_bucket{appName="web",environment="development",le="5.0"} 2',
        'latency_bucket{appName="web",environment="development",le="+Inf"} 2',
        'latency_sum{appName="web",environment="development"} 3.5',
        'latency_count{appName="web",environment="development"} 2',
        "# HELP temperature In degrees",
        "# TYPE temperature gauge",
        'temperature{appName="web",environment="development"} 4.5',
    ]


def test_other_buckets_begin_anew(sdk: Sdk) -> None:
    for bounds in ((1, "+Inf"), (2, "+Inf")):
        buckets = [{"le": bound, "count": 1} for bound in bounds]
        post(sdk, metric("latency", "histogram", count=1, sum=0.5, buckets=buckets))
    assert (ImpactSeries.objects.get().count, set(ImpactSeries.objects.get().buckets)) == (1, {"2.0", "inf"})


def test_an_edge_proxy_reports_them_too(sdk: Sdk) -> None:
    body = {"applications": [], "metrics": [], "impactMetrics": [metric("hits", "counter", value=2)]}
    assert sdk.api.post("/api/client/metrics/bulk", body).status_code == 202
    assert 'hits{environment="development"} 2.0' in scraped()


def test_labels_and_help_are_escaped(sdk: Sdk) -> None:
    post(sdk, metric("a b", "counter", value=1, labels={"x": 'a"\\\n'}) | {"help": "two\nlines"})
    assert "# HELP a_b two\\nlines" in scraped()
    assert any(line.endswith('x="a\\"\\\\\\n"} 1.0') for line in scraped())


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_the_largest_numbers_add_up(sdk: Sdk, kind: str) -> None:
    field = "sum" if kind == "histogram" else "value"
    for _ in range(3):
        post(sdk, metric("large", kind, **{field: MAX_NUMBER}))
    assert ImpactSeries.objects.get().value == pytest.approx(MAX_NUMBER * (1 if kind == "gauge" else 3))
    later = timezone.now() + timedelta(days=3)
    clean_points(later)
    assert ImpactPoint.objects.get().is_hour


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        {},
        metric("hits", "summary", value=1),
        metric("hits", "counter", value=-1),
        metric("hits", "counter", value="inf"),
        metric("hits", "counter", value=1.7e308),
        metric("hits", "gauge", value=-1e101),
        metric("hits", "histogram", sum=1e101),
        metric("hits", "counter", value=1, labels={"x" * 101: "y"}),
        metric("x" * 256, "counter", value=1),
        metric("hits", "histogram", buckets=[{"le": 1, "count": 1}] * 2),
    ],
)
def test_a_bad_one_spoils_nothing_else(sdk: Sdk, bad: object) -> None:
    make_flag("checkout", "default")
    post(sdk, bad, metric("good", "counter", value=1), bucket=metrics("web", ["checkout"])["bucket"])
    assert ImpactSeries.objects.get().name == "good"
    assert UsageHour.objects.exists()
    assert IgnoredReport.objects.get(kind="impact metric").number == 1


def test_metrics_and_series_are_bounded(sdk: Sdk, settings) -> None:
    settings.IMPACT_METRICS_LIMIT = settings.IMPACT_SERIES_LIMIT = 2
    for n in range(4):
        post(sdk, metric(f"m-{n}", "counter", value=1))
        post(sdk, metric("m-0", "counter", value=1, labels={"n": str(n)}))
    assert set(ImpactSeries.objects.values_list("name", flat=True)) == {"m-0", "m-1"}
    assert ImpactSeries.objects.filter(name="m-0").count() == 2
    assert IgnoredReport.objects.get(kind="impact metric").number == 5


def test_a_metric_keeps_its_kind(sdk: Sdk) -> None:
    post(sdk, metric("hits", "counter", value=1))
    post(sdk, metric("hits", "gauge", value=7))
    assert (ImpactSeries.objects.get().kind, ImpactSeries.objects.get().value) == ("counter", 1.0)


def test_only_readers_of_all_projects_may_scrape(api, sdk: Sdk) -> None:
    callers = (api["viewer"], api["outsider"], sdk.api, api["nobody"])
    assert [caller.get(URL).status_code for caller in callers] == [200, 403, 403, 401]
