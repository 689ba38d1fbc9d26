"""Reads input from SDKs and relays behind this one: reports as lines of the journal, tokens, states of relays."""

import logging
from datetime import UTC, datetime
from typing import Any

from flagadmin.core.errors import Problem
from relay.http import Request
from relay.reports import Line, hour_of
from relay.tokens import FRONTEND, Token
from sdk import schemas as wire

log = logging.getLogger("flagadmin.relay")

_PLATFORM = tuple(wire.Platform.model_fields)


def read_registration(request: Request, token: Token) -> Line:
    """Raises ValidationError."""
    body = wire.read(wire.Registration, request.json())
    return _make_line(token, _make_application(request, token, body, body.strategies))


def read_metrics(request: Request, token: Token) -> Line:
    """Raises ValidationError."""
    body, invalid = wire.read_metrics(request.json())
    if invalid:
        log.warning("%s reported invalid counts of %d flags, which are ignored", body.appName, invalid)
    line = _make_line(token, _make_application(request, token, body))
    line["impactMetrics"] = [
        _add_origin(_add_label(metric, body.appName), token) for metric in body.impactMetrics or []
    ]
    if body.bucket is not None:
        hour = hour_of(body.bucket.stop, now=datetime.now(UTC))
        line["metrics"] = [
            _make_metric(body.appName, name, token, hour, counts)
            for name, counts in body.bucket.toggles.items()
        ]
    return line


def read_bulk(data: Any, token: Token) -> tuple[Line, list[Problem]]:
    """Reads another relay's report, and the problems of its entries. Raises ValidationError."""
    lists = wire.read(wire.BulkLists, data)
    applications, problems = wire.read_each(wire.BulkApplication, lists.applications, "applications")
    metrics, more = wire.read_each(wire.BulkMetric, lists.metrics, "metrics")
    line = _make_line(token)
    own = token.environment
    line["applications"] = [
        each.model_dump(exclude_none=True) | {"environment": own}
        for each in applications
        if (each.environment or own) == own
    ]
    now = datetime.now(UTC)
    line["metrics"] = [
        _make_metric(each.appName, each.featureName, token, hour_of(each.timestamp, now=now), each)
        for each in metrics
        if (each.environment or own) == own
    ]
    line["impactMetrics"] = [_keep_origin(metric, token) for metric in lists.impactMetrics or []]
    return line, problems + more


def read_relays(request: Request) -> list[Line]:
    """Raises ValidationError."""
    return [report.model_dump() for report in wire.read(wire.RelayReports, request.json()).relays]


def read_tokens(request: Request) -> list[str]:
    """The tokens, without duplicates. Raises ValidationError."""
    return list(dict.fromkeys(wire.read(wire.Tokens, request.json()).tokens))


def _make_line(token: Token, *applications: Line) -> Line:
    return {
        "environment": token.environment,
        "token": token.secret,
        "applications": list(applications),
        "metrics": [],
        "impactMetrics": [],
    }


def _make_application(
    request: Request,
    token: Token,
    body: wire.Registration | wire.Metrics,
    strategies: list[str] | None = None,
) -> Line:
    said = {name: value for name in _PLATFORM if (value := getattr(body, name))}
    if header := wire.read_sdk_header(request.headers):
        said.setdefault("sdkVersion", header)
    return said | {
        "appName": body.appName,
        "instanceId": body.instanceId or wire.DEFAULT_INSTANCE,
        "environment": token.environment,
        "sdkType": "frontend" if token.kind == FRONTEND else "backend",
        "strategies": strategies or [],
    }


def _add_label(metric: Any, application: str) -> Any:
    """Adds the application to the labels of an impact metric, as the server does for an SDK's own report.

    Leaves the metric unchanged if it already has the maximum number of labels.
    """
    samples = metric.get("samples") if isinstance(metric, dict) else None
    if not isinstance(samples, list):
        return metric
    return metric | {"samples": [_add_label_to_sample(sample, application) for sample in samples]}


def _add_origin(metric: Any, token: Token) -> Any:
    """Adds the kind and the projects of the SDK's token: the upstream sees only the relay's."""
    if not isinstance(metric, dict):
        return metric
    return metric | {"origin": {"type": token.kind, "projects": list(token.projects)}}


def _keep_origin(metric: Any, token: Token) -> Any:
    """Keeps the origin sent by a relay behind this one, as far as that relay's own token covers it."""
    origin = metric.get("origin") if isinstance(metric, dict) else None
    if not isinstance(origin, dict) or not isinstance(origin.get("projects"), list):
        return _add_origin(metric, token)
    if token.projects == ("*",):
        return metric
    named = {name for name in origin["projects"] if isinstance(name, str)}
    own = token.projects if "*" in named else sorted(named & {*token.projects})
    return metric | {"origin": origin | {"projects": list(own)}}


def _add_label_to_sample(sample: Any, application: str) -> Any:
    labels = sample.get("labels") or {} if isinstance(sample, dict) else None
    if not isinstance(labels, dict) or len(labels) >= wire.MAX_LABELS:
        return sample
    return sample | {"labels": {"appName": application} | labels}


def _make_metric(
    application: str, flag: str, token: Token, hour: str, counts: wire.ToggleCount | wire.BulkMetric
) -> Line:
    return {
        "appName": application,
        "featureName": flag,
        "environment": token.environment,
        "timestamp": hour,
        "yes": counts.yes,
        "no": counts.no,
        "variants": dict(counts.variants),
    }
