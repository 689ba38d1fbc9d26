"""What the parts of the application count."""

from collections.abc import Callable
from typing import Any

import pytest

from flagadmin.core.errors import ServiceUnavailable
from flagadmin.core.metrics import sample
from playground import snapshot_cache
from sdk.features.api import cache as answers
from sdk.reports import batcher as report_batcher
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.metrics import Values
from tests.support.sdk import Sdk

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"


def test_evaluations_and_snapshots(api: Any, counted: Callable[[], Values]) -> None:
    snapshot_cache.cache.clear()
    for name in ("a", "b"):
        make_flag(name, "default")
    query = {"environment": "development", "projects": ["default"], "context": {"userId": "1"}}
    for _ in range(3):
        assert api["viewer"].post("/api/admin/playground", query).status_code == 200
    several = query | {"environments": ["development", "production"], "context": {"userId": "1,2,3"}}
    del several["environment"]
    assert api["viewer"].post("/api/admin/playground/advanced", several).status_code == 200
    frontend = client(make_token("frontend", projects=["default"], environment="development"))
    assert frontend.get("/api/frontend").status_code == 200
    sample()
    values = counted()
    assert values['flagadmin_evaluations_total{api="playground"}'] == 3 * 2 + 2 * 3 * 2
    assert values['flagadmin_evaluations_total{api="frontend"}'] == 2
    assert values['flagadmin_snapshot_lookups_total{result="miss"}'] == 2
    assert values['flagadmin_snapshot_lookups_total{result="hit"}'] == 4
    assert values["flagadmin_snapshot_compile_seconds_count"] == 2
    size = values['flagadmin_cache_bytes{cache="snapshots",process="main-1"}']
    assert size == snapshot_cache.cache.nbytes > 0


def test_sdk_answers_are_counted(sdk: Sdk, counted: Callable[[], Values]) -> None:
    make_flag("flag", "default")
    for _ in range(2):
        assert sdk.features().status_code == 200
    sample()
    values = counted()
    assert values["flagadmin_sdk_answer_build_seconds_count"] == 1
    assert values['flagadmin_cache_bytes{cache="sdk answers",process="main-1"}'] == answers.nbytes > 0


def test_reports_are_counted_by_result(
    sdk: Sdk, counted: Callable[[], Values], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ServiceUnavailable

    assert sdk.register("web").status_code == 202
    monkeypatch.setattr(report_batcher, "store_report", refuse)
    assert sdk.register("web").status_code == 503
    sample()
    values = counted()
    assert values['flagadmin_reports_total{result="accepted"}'] == 1
    assert values['flagadmin_reports_total{result="refused"}'] == 1
    assert values['flagadmin_reports_waiting{process="main-1"}'] == 0


def test_imports_are_counted_by_result(api: Any, counted: Callable[[], Values]) -> None:
    data = {"features": [{"name": "new"}], "featureStrategies": [], "tagTypes": []}
    body = {"project": "default", "environment": "development", "data": data}
    assert api["admin"].post(IMPORT, body).status_code == 200
    assert api["admin"].post(IMPORT, body | {"project": "unknown"}).status_code == 404
    values = counted()
    assert values['flagadmin_imports_total{result="done",work="import_bytes"}'] == 1
    assert values['flagadmin_imports_total{result="refused",work="import_bytes"}'] == 1
    assert values['flagadmin_import_seconds_count{work="import_bytes"}'] == 2
