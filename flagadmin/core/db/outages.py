"""Serves SDKs from memory for a while when the database cannot be reached.

Each worker's watcher says whether it reaches the database. Requests that read for SDKs use `read`, with what they know
from before. Its age is in the response (`Cache-Status`, RFC 9211).
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections
from prometheus_client import Counter, Gauge

from flagadmin.core.errors import ServiceUnavailable
from flagadmin.core.metrics.processes import process_name
from flagadmin.core.metrics.sampling import register_sampler

T = TypeVar("T")

UNREACHABLE = (OperationalError, InterfaceError)
IMPATIENCE = 0.1  # seconds that requests wait for a connection while there is none to be had

ANSWERS = Counter(
    "flagadmin_stale_answers_total", "Answers from memory while the database could not be reached."
)
SECONDS = Gauge(
    "flagadmin_database_lost_seconds",
    "How long a process has not reached the database; 0 if it does.",
    ["process"],
)


class Reach:
    """Whether this process reaches the primary database."""

    def __init__(self) -> None:
        self._reached_at = float("-inf")  # on the monotonic clock
        self.is_lost = False

    def note_reached(self) -> None:
        self._reached_at = time.monotonic()
        self.is_lost = False

    def note_lost(self) -> None:
        self.is_lost = True

    def forget(self) -> None:
        """Forgets the database's reach when nobody looks any more."""
        self._reached_at = float("-inf")
        self.is_lost = False

    def count_seconds_without(self) -> float:
        """Since the database was last reached; infinite if it never was."""
        return time.monotonic() - self._reached_at

    def get_age(self) -> float | None:
        """The age in seconds of an answer from memory; None if there must be none, after too long."""
        age = self.count_seconds_without()
        return age if age < settings.SERVE_STALE_SECONDS else None


reach = Reach()

_age: ContextVar[float | None] = ContextVar("age", default=None)
"""The age of what the current request was answered with from memory."""


def read(reader: Callable[[], T], known: Callable[[], T | None], *, using: str = DEFAULT_DB_ALIAS) -> T:
    """Returns what ``reader`` returns, or what is ``known`` from before while the database cannot be reached.

    ``using`` is the database that ``reader`` reads: a replica is asked during an outage too. Raises ServiceUnavailable
    or what ``reader`` raises if nothing is known or it is too old.
    """
    failure: Exception | None = None
    if not reach.is_lost or using != DEFAULT_DB_ALIAS:
        try:
            return reader()
        except UNREACHABLE as error:
            failure = error
    age = reach.get_age()
    value = known() if age is not None else None
    if value is None:
        raise failure or ServiceUnavailable()
    _age.set(age)
    return value


def may_use_known() -> bool:
    """Whether the current request may be answered with what is known, as the database could not be reached."""
    age = reach.get_age()
    if age is not None:
        _age.set(age)
    return age is not None


def is_from_memory() -> bool:
    """Whether the answer to the current request is made from what was known before an outage."""
    return _age.get() is not None


def begin_request() -> None:
    _age.set(None)


def get_cache_status() -> str | None:
    """The value of the header Cache-Status for the current request, None if its answer is not from memory."""
    age = _age.get()
    return None if age is None else make_cache_status(age)


def make_cache_status(age: float) -> str:
    """Counts an answer of this age, and says so in the words of RFC 9211."""
    ANSWERS.inc()
    return f"flagadmin; hit; ttl=-{int(age)}"


def set_patience() -> None:
    """Sets how long requests wait for a connection: otherwise, all threads of a worker would soon wait for none.

    Not in an event loop: for the bundled database, this may start its server.
    """
    for alias in connections:
        pool = getattr(connections[alias], "pool", None)
        if pool is not None:
            patience = connections[alias].settings_dict["OPTIONS"]["pool"]["timeout"]
            pool.timeout = IMPATIENCE if reach.is_lost else patience


@register_sampler
def _sample() -> None:
    SECONDS.labels(process_name()).set(reach.count_seconds_without() if reach.is_lost else 0.0)
