"""Asks the Prometheus of the settings for a number: one request, bounded in time and size, redirects refused."""

import math
import time
from datetime import datetime
from typing import Any

import requests
from django.conf import settings

from flagadmin.core.http.bounded_answers import AnswerTooLarge, bound, read_bounded
from flagadmin.core.http.json_bodies import parse_json

CONNECT_SECONDS, READ_SECONDS = 2.0, 5.0
MAX_BYTES = 1_000_000


class PrometheusError(Exception):
    """No number could be read. The message says why."""


def ask_prometheus(query: str, now: datetime) -> float | None:
    """The result of an instant query, which must be one number. None if there is no data. Raises PrometheusError."""
    if not settings.PROMETHEUS_URL:
        raise PrometheusError("No Prometheus is configured (FLAGADMIN_PROMETHEUS_URL).")
    body = _ask(query, now)
    if not isinstance(body, dict) or body.get("status") != "success":
        raise PrometheusError(f"Prometheus refuses the query: {str(_member(body, 'error'))[:200]}")
    return _read_number(body.get("data"))


def _ask(query: str, now: datetime) -> Any:
    until = time.monotonic() + READ_SECONDS
    try:
        with (
            bound(requests.Session()) as session,
            session.get(
                f"{settings.PROMETHEUS_URL.rstrip('/')}/api/v1/query",
                params={"query": query, "time": f"{now.timestamp():.3f}", "timeout": f"{READ_SECONDS:g}s"},
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            if answer.is_redirect:
                raise PrometheusError("Prometheus answers with a redirect, which is not followed.")
            content = read_bounded(answer, max_bytes=MAX_BYTES, until=until)
    except AnswerTooLarge as error:
        raise PrometheusError("Prometheus answers with more than 1 MB.") from error
    except requests.RequestException as error:
        raise PrometheusError(f"Prometheus cannot be reached ({type(error).__name__}).") from error
    try:
        return parse_json(content)
    except Exception as error:
        raise PrometheusError("Prometheus answers with something else than JSON.") from error


def _member(body: Any, name: str) -> Any:
    return body.get(name, "") if isinstance(body, dict) else ""


def _read_number(data: Any) -> float | None:
    try:
        if data["resultType"] == "scalar":
            value = float(data["result"][1])
        else:
            if not data["result"]:
                return None
            [row] = data["result"]
            value = float(row["value"][1])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise PrometheusError("The query must have one number as its result.") from error
    return None if math.isnan(value) else value
