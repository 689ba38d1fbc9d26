"""Matches a signal against the conditions of a rule. Pure: knows no database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY = "*"
MAX_ALERTS = 100  # of one request of Alertmanager
MAX_SUMMARY = 300  # characters
_SUMMARIES = (
    "annotations.summary",
    "annotations.description",
    "summary",
    "title",
    "message",
    "labels.alertname",
)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a signal. Items with the same ``key`` are repetitions; "" marks a unique one."""

    document: Document
    key: str

    @property
    def summary(self) -> str:
        texts = (look_up(self.document, path) for path in _SUMMARIES)
        return " ".join(next((text for text in texts if text), "").split())[:MAX_SUMMARY]


def read_items(kind: str, body: Document) -> list[Item]:
    """Reads each firing alert of Alertmanager, or the body itself. Raises ValueError with the problem."""
    if kind != "alertmanager":
        return [Item(body, look_up(body, "id"))]
    alerts = body.get("alerts")
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("alerts must be a list of objects, as Alertmanager sends them")
    if len(alerts) > MAX_ALERTS:
        raise ValueError(f"alerts must have at most {MAX_ALERTS} items; this has {len(alerts):,}")
    return [Item(alert, _make_key(alert)) for alert in alerts if alert.get("status", "firing") == "firing"]


def _make_key(alert: Document) -> str:
    return " ".join(filter(None, (look_up(alert, "fingerprint"), look_up(alert, "startsAt"))))


def meets(match: Mapping[str, str], document: Document) -> bool:
    """Whether the document has each value, or any at all for ``*``."""
    return all(
        (text := look_up(document, path)) == value or (value == ANY and text != "")
        for path, value in match.items()
    )


def look_up(document: Any, path: str) -> str:
    """The text at a path like ``labels.severity``; "" if there is none. Names may contain dots."""
    if not isinstance(document, Mapping):
        return ""
    if path in document:
        return _as_text(document[path])
    dot = path.find(".")
    while dot != -1:
        if path[:dot] in document and (text := look_up(document[path[:dot]], path[dot + 1 :])):
            return text
        dot = path.find(".", dot + 1)
    return ""


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""
