"""The read replica that SDK answers are made from, and the primary in its place while it is lost.

Each worker's watcher reads from it at least twice a second and says here whether it answers. A request that it fails
before that is answered by the primary.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from prometheus_client import Counter, Gauge

from flagadmin.core.db.outages import UNREACHABLE, reach
from flagadmin.core.metrics.processes import process_name
from flagadmin.core.metrics.sampling import register_sampler

log = logging.getLogger("flagadmin.replica")

T = TypeVar("T")

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
    """Whether the replica answers, as this process knows it."""

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
    """Whether `read_for_sdks` asks the primary if this database fails: memory is for what neither answers."""
    return using != DEFAULT_DB_ALIAS and not reach.is_lost


def read_for_sdks(reader: Callable[[str], T]) -> T:
    """Returns what ``reader`` returns for the alias of the database that SDKs are answered from."""
    using = choose_sdk_database()
    if not has_other_database(using):
        return reader(using)
    try:
        return reader(using)
    except UNREACHABLE:
        FALLBACKS.inc()
        return reader(DEFAULT_DB_ALIAS)


@register_sampler
def _sample() -> None:
    LOST.labels(process_name()).set(replica.count_seconds_lost())
