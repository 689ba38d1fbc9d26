"""Writes impact metrics in the Prometheus text format, version 0.0.4."""

import math
import re
from collections.abc import Iterator

import orjson

from flagadmin.core.db.transactions import stream_rows
from projects.applications.impact_metrics import HISTOGRAM
from projects.models import ImpactSeries

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


def format_impact_metrics() -> str:
    return "".join(f"{line}\n" for line in _format_lines())


def _format_lines() -> Iterator[str]:
    before = ""
    for row in stream_rows(ImpactSeries.objects.order_by("name", "labels")):
        name = _format_name(row.name)
        if name != before:
            yield f"# HELP {name} {_escape(row.help)}"
            yield f"# TYPE {name} {row.kind}"
            before = name
        labels = {_format_name(key): value for key, value in orjson.loads(row.labels).items()}
        if row.kind != HISTOGRAM:
            yield f"{name}{_format_labels(labels)} {row.value!r}"
            continue
        for bound, count in sorted(row.buckets.items(), key=lambda item: float(item[0])):
            yield f"{name}_bucket{_format_labels(labels | {'le': _format_bound(bound)})} {count}"
        yield f"{name}_sum{_format_labels(labels)} {row.value!r}"
        yield f"{name}_count{_format_labels(labels)} {row.count}"


def _format_name(text: str) -> str:
    """A valid label name: flag names are used as labels and may contain other characters."""
    name = _NOT_IN_NAMES.sub("_", text)
    return f"_{name}" if name[:1].isdigit() or not name else name


def _format_bound(text: str) -> str:
    return "+Inf" if math.isinf(float(text)) else text


def _format_labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{key}="{_escape(value, quotes=True)}"' for key, value in labels.items())
    return f"{{{pairs}}}"


def _escape(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
