"""Reports impact metrics as an SDK does."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.cast import client, make_token
from tests.support.plans import Move

MINUTE = timedelta(minutes=1)


@pytest.fixture
def sdk(shop: Any) -> Any:
    return client(make_token("backend", environment="production"))


def report(sdk: Any, value: float, name: str = "errors", **labels: str) -> None:
    """Of a counter, now."""
    metric = {"name": name, "help": "", "type": "counter", "samples": [{"labels": labels, "value": value}]}
    body = {"appName": "web", "instanceId": "1", "bucket": None, "impactMetrics": [metric]}
    bucket = {"start": "2026-11-24T08:00:00Z", "stop": "2026-11-24T08:01:00Z", "toggles": {}}
    answer = sdk.post("/api/client/metrics", body | {"bucket": bucket})
    assert answer.status_code == 202, answer.content


def report_all(sdk: Any, move: Move, samples: list[float], **labels: str) -> None:
    """One a minute."""
    for sample in samples:
        move(MINUTE)
        report(sdk, sample, **labels)
