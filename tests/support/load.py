"""Requests that keep a server busy, and threads that send them one after the other."""

from datetime import UTC, datetime
from typing import Any

ADMIN, SDK = "*:*.0123456789abcdef-admin", "*:development.0123456789abcdef-sdk"
TOKENS = {"INIT_ADMIN_API_TOKENS": ADMIN, "INIT_CLIENT_API_TOKENS": SDK}
FLAG = "/api/admin/projects/default/features/checkout/environments/development"
IMPORTED = 20  # flags of an import
_EMPTY = ("featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes")


def report_body() -> dict[str, Any]:
    """One use of the flag."""
    now = datetime.now(UTC).isoformat()
    bucket = {"start": now, "stop": now, "toggles": {"checkout": {"yes": 1, "no": 0}}}
    return {"appName": "load", "bucket": bucket}


def import_body(number: int) -> dict[str, Any]:
    features = [{"name": name, "type": "release"} for name in imported_names(number)]
    data = {"features": features} | {name: [] for name in _EMPTY}
    return {"project": "default", "environment": "development", "data": data}


def imported_names(number: int) -> set[str]:
    return {f"imported-{number}-{part}" for part in range(IMPORTED)}
