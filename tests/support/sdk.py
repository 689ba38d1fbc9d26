"""A client that sends an SDK's requests with a backend token."""

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.support.cast import client, make_token


def registration(app: str, instance: str | None = "i-1", **more: Any) -> dict[str, Any]:
    body = {"appName": app, "instanceId": instance, "started": "2026-11-21T03:07:13.000Z", "interval": 10}
    return body | {"strategies": ["default"]} | more


def metrics(
    app: str,
    flags: list[str],
    instance: str | None = "i-1",
    *,
    yes: int = 3,
    no: int = 1,
    at: datetime | None = None,
    **more: Any,
) -> dict[str, Any]:
    at = at or timezone.now()
    toggles = {flag: {"yes": yes, "no": no, "variants": {}} for flag in flags}
    bucket = {"start": at.isoformat(), "stop": at.isoformat(), "toggles": toggles}
    return {"appName": app, "instanceId": instance, "bucket": bucket} | more


class Sdk:
    """Calls the client API as an SDK does, with one backend token."""

    def __init__(self, api: APIClient) -> None:
        self.api = api

    def register(self, *args: Any, **more: Any) -> Any:
        return self.api.post("/api/client/register", registration(*args, **more))

    def count(self, *args: Any, **more: Any) -> Any:
        return self.api.post("/api/client/metrics", metrics(*args, **more))

    def features(self, query: str = "", **headers: str) -> Any:
        return self.api.get(
            f"/api/client/features{query}", headers={"Unleash-Client-Spec": "5.2.0"} | headers
        )


def make_sdk(environment: str = "development", projects: list[str] | None = None) -> Sdk:
    return Sdk(client(make_token("backend", projects=projects, environment=environment)))


@pytest.fixture
def sdk(db: None) -> Sdk:
    """An SDK with a backend token for project ``default`` and environment ``development``."""
    return make_sdk(projects=["default"])
