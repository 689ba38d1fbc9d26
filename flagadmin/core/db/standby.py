"""Bounds how long a commit waits once the database's synchronous standby is lost.

PostgreSQL lets a commit wait for its standby without any limit. Each worker looks for flagadmin's commits that have
waited longer than FLAGADMIN_COMMIT_SECONDS and cancels their wait: the primary has stored them, but no standby has
confirmed them (CommitInDoubt). From then on, transactions that have written something are refused before their commit
(CommitRefused), until a commit is confirmed again. Transactions that only read are not affected. Requests that read
store their side notes, such as last-used times, on the primary alone.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, transaction
from prometheus_client import Counter, Gauge

from flagadmin.core.db.connections import Connection, connect
from flagadmin.core.metrics import process_name, register_sampler

log = logging.getLogger("flagadmin.standby")

NAME, PROBE = "flagadmin commits", "flagadmin probe"  # the connections' application_name
LOOK = 0.5  # seconds between looks at the commits that wait
LOOK_UNREQUIRED = 5.0  # while commits do not wait for a standby
RECONNECT = 2.0  # seconds

UNCONFIRMED = Counter(
    "flagadmin_unconfirmed_commits_total",
    "Transactions that no standby confirmed: made on the primary (in doubt), or not made (refused).",
    ["result"],
)
MISSING = Gauge(
    "flagadmin_standby_missing_seconds",
    "For how long commits have been refused because no standby confirms them; 0 if it does.",
    ["process"],
)
REQUIRED = Gauge(
    "flagadmin_standby_required", "1 if commits wait for a synchronous standby, otherwise 0.", ["process"]
)

_LOOK = """
SELECT current_setting('synchronous_standby_names') <> '',
       (SELECT array_agg(ARRAY[pid::text, state_change::text, application_name])
          FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep')
"""
_CANCEL = "SELECT pg_cancel_backend(%s)"
# The smallest transaction that writes something.
_PROBE = "SELECT pg_logical_emit_message(true, 'flagadmin', '')"


class CommitInDoubt(OperationalError):
    """The primary has made the transaction, but no standby has confirmed it, so it may be lost with the primary."""

    def __init__(self) -> None:
        UNCONFIRMED.labels("in doubt").inc()
        super().__init__("canceled waiting for the synchronous standby")


class CommitRefused(OperationalError):
    """The transaction was not made, because no standby would confirm it."""

    def __init__(self) -> None:
        UNCONFIRMED.labels("refused").inc()
        super().__init__("the synchronous standby is missing")


class Standby:
    """Whether the synchronous standby confirms commits, as far as this process knows."""

    def __init__(self) -> None:
        self._missing_since: float | None = None  # on the monotonic clock
        self.is_required = False

    @property
    def is_missing(self) -> bool:
        return self._missing_since is not None

    def note_missing(self) -> None:
        if self._missing_since is None:
            self._missing_since = time.monotonic()
            log.error("No standby confirms commits: changes and reports get 503 until one does")

    def note_confirmed(self) -> None:
        if self._missing_since is not None:
            log.warning("Commits are confirmed again, after %.0f s", self.count_seconds_missing())
            self._missing_since = None

    def count_seconds_missing(self) -> float:
        return 0.0 if self._missing_since is None else time.monotonic() - self._missing_since


standby = Standby()


def wait_for_no_standby() -> None:
    """Makes the commit of the current transaction wait only for the primary's disk."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = local")


@contextmanager
def committed_locally() -> Iterator[None]:
    """A transaction for data that may be lost with the primary, such as last-used times, and must not delay anyone.

    Inside an open transaction, its own commit applies.
    """
    is_own = not connection.in_atomic_block
    with transaction.atomic():
        if is_own:
            wait_for_no_standby()
        yield


_notices = threading.local()


def keep_canceled_wait(notice: psycopg.errors.Diagnostic) -> None:
    """Handles psycopg's notices. Runs in the thread that receives one."""
    if notice.source_function == "SyncRepWaitForLSN":
        _notices.was_canceled = True


def forget_canceled_wait() -> None:
    _notices.was_canceled = False


def was_wait_canceled() -> bool:
    """Whether PostgreSQL has reported a canceled wait to this thread since `forget_canceled_wait`."""
    return bool(getattr(_notices, "was_canceled", False))


async def watch_commits() -> None:
    """A task of the event loop, with a connection of its own. Reconnects automatically."""
    while True:
        try:
            async with await connect(DEFAULT_DB_ALIAS, NAME) as connection:
                await _watch(connection)
        except (psycopg.Error, DatabaseError, OSError) as error:
            log.debug("Commits are not watched: %s", error)  # the watcher of changes reports it
        await asyncio.sleep(RECONNECT)


async def _watch(connection: Connection) -> None:
    waits = CommitWaits(connection)
    probe: asyncio.Task[Any] | None = None
    try:
        while True:
            if await waits.cancel_late():
                standby.note_missing()
            if standby.is_missing and (probe is None or probe.done()):
                probe = asyncio.create_task(_wait_until_confirmed())
            await asyncio.sleep(LOOK if standby.is_required or standby.is_missing else LOOK_UNREQUIRED)
    finally:
        if probe is not None:
            probe.cancel()


class CommitWaits:
    """The commits of flagadmin that wait for a standby, with the time since when each has waited."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._since: dict[
            tuple[str, ...], float
        ] = {}  # on the monotonic clock, by session, statement, application

    async def cancel_late(self) -> bool:
        """Cancels commits that have waited too long, and returns whether there was one. Probes keep waiting: all
        workers see them.
        """
        row = await (await self._connection.execute(_LOOK)).fetchone()
        assert row is not None
        standby.is_required = row[0]
        now = time.monotonic()
        self._since = {wait: self._since.get(wait, now) for wait in map(tuple, row[1] or ())}
        late = [wait for wait, since in self._since.items() if now - since >= _choose_patience(wait)]
        for pid, _, application in late:
            if application != PROBE:
                await self._connection.execute(_CANCEL, [int(pid)])
        return bool(late)


def _choose_patience(wait: tuple[str, ...]) -> float:
    """The patience in seconds. A worker probes only after it has waited."""
    return LOOK if wait[2] == PROBE else float(settings.COMMIT_SECONDS)


async def _wait_until_confirmed() -> None:
    """Commits a probe, which takes until a standby confirms it or none is required any more."""
    try:
        async with await connect(DEFAULT_DB_ALIAS, PROBE) as connection:
            await connection.execute(_PROBE)
    except (psycopg.Error, DatabaseError, OSError) as error:
        log.debug("Commits cannot be tried: %s", error)
    else:
        standby.note_confirmed()


@register_sampler
def _sample() -> None:
    MISSING.labels(process_name()).set(standby.count_seconds_missing())
    REQUIRED.labels(process_name()).set(standby.is_required)
