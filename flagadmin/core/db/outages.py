"""Serves SDKs from memory for a while when the database cannot be reached.

Each worker's watcher reports whether it reaches the database. Requests that read for SDKs call `read` with their
earlier result. The response states its age (`Cache-Status`, RFC 9211).

SDK answers come from the read replica if there is one, and from the primary while the replica is lost. Each worker's
watcher reads from the replica at least twice a second and reports here whether it answers. If the replica fails a
request before that, the primary answers it.
"""

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections
from prometheus_client import Counter, Gauge

from flagadmin.core.errors import ServiceUnavailable
from flagadmin.core.metrics import process_name, register_sampler

T = TypeVar("T")

UNREACHABLE = (OperationalError, InterfaceError)
IMPATIENCE = 0.1  # seconds that requests wait for a connection during an outage

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
        """Resets the state when nothing watches the database any more."""
        self._reached_at = float("-inf")
        self.is_lost = False

    def count_seconds_without(self) -> float:
        """Seconds since the database was last reached; infinite if it never was."""
        return time.monotonic() - self._reached_at

    def get_age(self) -> float | None:
        """The age in seconds of an answer from memory; None if the outage has lasted too long to give one."""
        age = self.count_seconds_without()
        return age if age < settings.SERVE_STALE_SECONDS else None


reach = Reach()

_age: ContextVar[float | None] = ContextVar("age", default=None)
"""The age of the answer from memory that the current request got."""


def read(reader: Callable[[], T], known: Callable[[], T | None], *, using: str = DEFAULT_DB_ALIAS) -> T:
    """Returns the result of ``reader``, or the earlier result ``known`` while the database cannot be reached.

    ``using`` is the database that ``reader`` reads: a replica is asked during an outage too. Raises ServiceUnavailable
    or the error of ``reader`` if there is no earlier result or it is too old.
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
    """Whether the current request may be answered from memory, because the database could not be reached."""
    age = reach.get_age()
    if age is not None:
        _age.set(age)
    return age is not None


def is_from_memory() -> bool:
    """Whether the current request is answered with data from before an outage."""
    return _age.get() is not None


def begin_request() -> None:
    _age.set(None)


def get_cache_status() -> str | None:
    """The Cache-Status header of the current request; None if its answer is not from memory."""
    age = _age.get()
    return None if age is None else make_cache_status(age)


def make_cache_status(age: float) -> str:
    """Counts an answer of this age, and returns its Cache-Status header (RFC 9211)."""
    ANSWERS.inc()
    return f"flagadmin; hit; ttl=-{int(age)}"


def set_patience() -> None:
    """Sets how long requests wait for a connection. Without it, all threads of a worker would soon wait in an outage.

    Do not call it in an event loop: it may start the server of the bundled database.
    """
    for alias in connections:
        pool = getattr(connections[alias], "pool", None)
        if pool is not None:
            patience = connections[alias].settings_dict["OPTIONS"]["pool"]["timeout"]
            pool.timeout = IMPATIENCE if reach.is_lost else patience


@register_sampler
def _sample_reach() -> None:
    SECONDS.labels(process_name()).set(reach.count_seconds_without() if reach.is_lost else 0.0)


log = logging.getLogger("flagadmin.replica")


REPLICA = "replica"

FALLBACKS = Counter(
    "flagadmin_replica_fallbacks_total", "Reads of SDKs that failed on the replica, made on the primary."
)
LOST = Gauge(
    "flagadmin_replica_lost_seconds",
    "For how long a process has read from the primary because the replica does not answer; 0 if it does.",
    ["process"],
)


class Replica:
    """Whether the replica answers, as far as this process knows."""

    def __init__(self) -> None:
        self._lost_at: float | None = None  # on the monotonic clock

    @property
    def is_lost(self) -> bool:
        return self._lost_at is not None

    def note_lost(self) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            log.error("The replica does not answer: SDKs are answered from the primary database")

    def note_reached(self) -> None:
        if self._lost_at is not None:
            log.warning("The replica answers again, after %.0f s", self.count_seconds_lost())
            self._lost_at = None

    def count_seconds_lost(self) -> float:
        return 0.0 if self._lost_at is None else time.monotonic() - self._lost_at


replica = Replica()


def has_replica() -> bool:
    return REPLICA in connections


def choose_sdk_database() -> str:
    """The replica if there is one and it answers. Only SDK responses may lag behind the primary database."""
    return REPLICA if has_replica() and not replica.is_lost else DEFAULT_DB_ALIAS


def has_other_database(using: str) -> bool:
    """Whether `read_for_sdks` asks the primary if this database fails. Memory is used when neither answers."""
    return using != DEFAULT_DB_ALIAS and not reach.is_lost


def read_for_sdks(reader: Callable[[str], T]) -> T:
    """Calls ``reader`` with the alias of the database that serves SDKs, and returns its result."""
    using = choose_sdk_database()
    if not has_other_database(using):
        return reader(using)
    try:
        return reader(using)
    except UNREACHABLE:
        FALLBACKS.inc()
        return reader(DEFAULT_DB_ALIAS)


@register_sampler
def _sample_replica() -> None:
    LOST.labels(process_name()).set(replica.count_seconds_lost())
