"""Traces for OpenTelemetry, if its variables ask for them: spans of requests that Django answers, and their queries.

Imports nothing without these variables. ``flagadmin[tracing]`` installs the packages.
"""

import os
from importlib.util import find_spec

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

PACKAGES = ("sdk", "exporter.otlp.proto.http", "instrumentation.django", "instrumentation.psycopg")


def is_wanted() -> bool:
    return (
        any(os.environ.get(name) for name in ENDPOINTS)
        and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
        and os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
    )


def is_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{package}") for package in PACKAGES)
    except ModuleNotFoundError:
        return False


def begin() -> None:
    """Called in each worker before the application is loaded."""
    if is_wanted() and is_installed():
        from flagadmin.core.server import spans

        spans.begin()
