"""Log formatters: JSON in production, plain text in debug mode, both with the request id."""

import logging
import re
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import orjson

# Set by RequestIdMiddleware. Defined here because logging is configured before other modules can be imported.
request_id: ContextVar[str] = ContextVar("request_id", default="")
trace_id: Callable[[], str] = str
"""The trace of the current request, or "". The tracing code sets it."""

_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "request"}


# The logger of the setup link for the first account, the only secret that the log may contain.
_MAY_SHOW_LINKS = "flagadmin.setup"
_SECRETS = (
    (re.compile(r"\b([0-9a-f]{6})[0-9a-f]{50}\b"), r"\1…"),  # the random part of an API token
    (re.compile(r"(/api-tokens/)(?![0-9]{1,18}(?![^\s?\"'/]))[^\s?\"'/]+"), r"\1…"),
    # Any other token, "project:environment.secret", plain or percent-encoded in a URL.
    (
        re.compile(
            r"(?<![\w*\[\]%-])([\w*\[\]%-]{1,200}(?::|%3[Aa])[\w*%-]{1,200}(?:\.|%2[Ee]))[\w~%+-]{8,}"
        ),
        r"\1…",
    ),
    (re.compile(r"(/login/(?:link|invite)/|/invite/|/invite-link/tokens/)[^\s?\"'/]+"), r"\1…"),
    (re.compile(r"(/calendar/)[^\s?\"'/]+(?=\.ics)"), r"\1…"),
    (re.compile(r"([?&]token=)[^\s&\"']+"), r"\1…"),
)


def drop_secrets(text: str) -> str:
    """The text with shortened tokens and one-time links, because logs contain URLs."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _get_request_id(record: logging.LogRecord) -> str:
    """The id of the current request, or of the request that Django logs about after all middleware has ended."""
    return request_id.get() or getattr(getattr(record, "request", None), "id", "")


class NotToldFilter(logging.Filter):
    """Drops Django's line about a 503: flagadmin has logged its reason as a warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        return getattr(record, "status_code", None) != HTTPStatus.SERVICE_UNAVAILABLE


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "message", "requestId"?, "trace_id"?, "exception"?}` and the keys of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := _get_request_id(record):
            line["requestId"] = current
        if trace := trace_id():
            line["trace_id"] = trace  # OpenTelemetry's name in logs
        line |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        written = orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        return written if record.name == _MAY_SHOW_LINKS else drop_secrets(written)


class PlainFormatter(logging.Formatter):
    """`12:30:01 INFO flagadmin.core.http.error_responses: message [request id]`"""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", "%H:%M:%S", style="{")

    def format(self, record: logging.LogRecord) -> str:
        written = super().format(record)
        return written if record.name == _MAY_SHOW_LINKS else drop_secrets(written)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name is logging's)
        line = super().formatMessage(record)
        current = _get_request_id(record)
        return f"{line} [{current}]" if current else line
