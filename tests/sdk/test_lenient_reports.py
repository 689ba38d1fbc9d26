"""Reports whose intent is plain are stored: null, and the empty arrays of languages that have one kind of empty list."""

from typing import Any

import pytest

from projects.models import Application, FlagUsage, IgnoredReport, UsageHour
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.sdk import Sdk, metrics, registration

pytestmark = pytest.mark.django_db


def send(path: str, body: dict[str, Any]) -> Any:
    kind = "frontend" if "frontend" in path else "backend"
    return client(make_token(kind, projects=["default"], environment="development")).post(path, body)


def with_toggles(toggles: Any) -> dict[str, Any]:
    body = metrics("web", [])
    body["bucket"]["toggles"] = toggles
    return body


@pytest.mark.parametrize("path", ["/api/client/metrics", "/api/frontend/client/metrics"])
@pytest.mark.parametrize(
    "counts",
    [
        {"yes": 3, "no": 1, "variants": None},  # Go
        {"yes": 3, "no": 1, "variants": []},  # PHP
        {"yes": 3, "no": None},
        {"yes": 3, "no": 1, "variants": {"red": None}},
    ],
)
def test_missing_counts_are_none(path: str, counts: dict[str, Any]) -> None:
    make_flag("checkout", "default")
    assert send(path, with_toggles({"checkout": counts})).status_code in (200, 202)
    assert UsageHour.objects.get().yes == 3
    assert not IgnoredReport.objects.exists()


@pytest.mark.parametrize("toggles", [[], None, {"checkout": []}, {"checkout": None}])
def test_an_empty_bucket_counts_nothing(sdk: Sdk, toggles: Any) -> None:
    assert sdk.api.post("/api/client/metrics", with_toggles(toggles)).status_code == 202
    assert Application.objects.get().name == "web"


@pytest.mark.parametrize("bucket", [[], {}])
def test_an_empty_list_is_no_bucket(sdk: Sdk, bucket: Any) -> None:
    body = metrics("web", []) | {"bucket": bucket, "impactMetrics": {}}
    assert sdk.api.post("/api/client/metrics", body).status_code == 202


@pytest.mark.parametrize("strategies", [None, {}, []])
@pytest.mark.parametrize("path", ["/api/client/register", "/api/frontend/client/register"])
def test_an_sdk_without_strategies_registers(path: str, strategies: Any) -> None:
    assert send(path, registration("web", strategies=strategies)).status_code in (200, 202)
    assert Application.objects.get().strategies == []


def test_a_bulk_with_empty_lists_is_stored(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    [counted] = metrics("web", ["checkout"])["bucket"]["toggles"].values()
    metric = {"appName": "web", "featureName": "checkout", "timestamp": "2026-11-21T03:00:00Z"}
    body = {
        "applications": [{"appName": "web", "instanceId": None, "strategies": {}}],
        "metrics": [metric | counted | {"variants": [], "no": None}],
        "seenTokens": {},
        "impactMetrics": {},
    }
    assert sdk.api.post("/api/client/metrics/bulk", body).status_code == 202
    assert FlagUsage.objects.exists()
    empty: dict[str, Any] = {"applications": None, "metrics": {}}
    assert sdk.api.post("/api/client/metrics/bulk", empty).status_code == 202


def test_empty_lists_of_impact_metrics_are_none(sdk: Sdk) -> None:
    samples = [{"labels": [], "value": 1, "buckets": None}]
    body = {"appName": "web", "impactMetrics": [{"name": "hits", "type": "counter", "samples": samples}]}
    assert sdk.api.post("/api/client/metrics", body).status_code == 202
    assert not IgnoredReport.objects.exists()


@pytest.mark.parametrize("path", ["/api/client/metrics", "/api/frontend/client/metrics"])
@pytest.mark.parametrize("wrong", [{"yes": -1}, {"yes": "x"}, {"no": 2**31}, {"variants": {"a": -1}}, "x", 7])
def test_a_bad_flag_loses_no_other(path: str, wrong: Any) -> None:
    make_flag("checkout", "default")
    body = with_toggles({"bad": wrong, "checkout": {"yes": 3, "no": 1}})
    assert send(path, body).status_code in (200, 202)
    assert UsageHour.objects.get().yes == 3
    assert IgnoredReport.objects.get(kind="flag count").number == 1


def test_a_report_of_bad_flags_alone_names_them(sdk: Sdk) -> None:
    answer = sdk.api.post("/api/client/metrics", with_toggles({"a": {"yes": -1}, "b": "x"}))
    paths = [problem["path"] for problem in answer.json()["details"]]
    assert (answer.status_code, paths) == (400, ["bucket.toggles.a.yes", "bucket.toggles.b"])
    assert not Application.objects.exists()
