"""Keeps, in each worker's event loop, what is needed to know that an answer is still right.

Woken by the database's notifications, and otherwise twice a second, `Watcher` reads the revisions of all projects
and the tokens in use. It rests while nobody asks. `state` is None unless the latest read began less than
SURE_SECONDS ago. So whatever compares with it refuses a revoked token and shows a change within that time, even if
notifications are lost.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from flagadmin.core.db import commits, outages
from flagadmin.core.db.async_connections import Connection, connect
from flagadmin.core.db.notifications import CHANNEL
from flagadmin.core.db.standby import committed_locally
from groups.tokens import note_uses_of_ids, sdk_tokens
from sdk.watcher.replica_reader import NAME, ReplicaReader
from sdk.watcher.state import State, read_state

log = logging.getLogger("flagadmin.watcher")

SURE_SECONDS = 1.0
PAUSE = 0.4  # seconds between reads without a notification
# Nobody has asked for the state, and no stream is open: whoever asks then wakes the watcher.
RESTS_AFTER = 90.0  # seconds, more than between two polls of an SDK
REST_PAUSE = 3.0
# Seconds from one read to the next, at least and at most, and twice as long as the read took in between: a script may
# change a hundred flags a second, and with 2,000 tokens a read takes 13 ms of CPU time.
BREATHER = (0.005, 0.1)
READ_TIMEOUT = 2.0
LATE = 5.0  # seconds of a read after which the database counts as lost
RECONNECT = (0.1, 2.0)  # seconds: the first pause, doubled up to the last
NOTE_USES = 60.0  # seconds between updates of the tokens' last-used times
TOKEN_IDLE = 600.0  # seconds after which an unused token is no longer read
MAX_TOKENS = 2_000

Subscriber = Callable[[State | None, State], object]


class Watcher:
    """One for each worker. All methods are called in its event loop."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._read_at = float("-inf")  # when the latest successful read began, on the monotonic clock
        self._took = 0.0  # seconds
        self._used: dict[int, float] = {}  # tokens in use, and when last
        self._noted_at = time.monotonic()
        self._commits = 0  # counted when that read began
        self._subscribers: list[Subscriber] = []
        self._sdk = ReplicaReader()
        self._asked_at = time.monotonic()
        self._asked = asyncio.Event()  # while it rests
        self._losing: asyncio.Future[None] | None = None  # kept so that it is not collected

    @property
    def state(self) -> State | None:
        """The state of at most SURE_SECONDS ago, or None if nothing is certain.

        The same object as long as nothing changes. None from a commit on this machine, or a notification of
        another's, until that has been read.
        """
        self._asked_at = time.monotonic()
        self._asked.set()
        certain = self._asked_at - self._read_at < SURE_SECONDS and commits.count() == self._commits
        return self._state if certain else None

    @property
    def latest(self) -> State | None:
        """The state read last, certain or not."""
        return self._state

    def use(self, token: int) -> bool:
        """Keeps a token in ``state.tokens`` for the next ten minutes, from the next read on.

        Its last-used time will be updated. Returns False if too many tokens are in use.
        """
        if token not in self._used and len(self._used) >= MAX_TOKENS:
            return False
        self._used[token] = self._asked_at = time.monotonic()
        self._asked.set()
        return True

    def subscribe(self, subscriber: Subscriber) -> None:
        """Calls ``subscriber(before, after)`` in the loop after each read that found something changed.

        ``before`` is None the first time. Nothing is lost while the database is away: what changed meanwhile
        comes with the next read.
        """
        self._subscribers.append(subscriber)

    async def run(self) -> None:
        """Watches until it is canceled. Reconnects automatically."""
        try:
            await self._run()
        finally:
            outages.reach.forget()

    async def _run(self) -> None:
        pause = RECONNECT[0]
        while True:
            try:
                async with _connected() as primary, self._sdk.opened():
                    await self.read(primary)
                    await self._reached()
                    pause = RECONNECT[0]
                    while True:
                        await asyncio.sleep(min(max(2 * self._took, BREATHER[0]), BREATHER[1]))
                        if await self._wait_for_notification(primary):
                            self._read_at = float("-inf")
                        await self.read(primary)
                        await self._reached()
                        await self._note_uses()
            except (psycopg.Error, DatabaseError, OSError, TimeoutError) as error:
                if pause == RECONNECT[0]:
                    log.warning("Changes are not watched: %s", str(error).strip() or type(error).__name__)
                elif not outages.reach.is_lost:
                    await self._lost()
            finally:
                self._read_at = float("-inf")
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, RECONNECT[1])

    async def _wait_for_notification(self, primary: Connection) -> bool:
        """Whether there was one before the next read is due."""
        rests = time.monotonic() - self._asked_at > RESTS_AFTER
        # It may have arrived with the result of a query: then the socket has nothing to read.
        notified = primary.pgconn.notifies() is not None
        if not notified:
            if rests:
                self._asked.clear()
                await _until_readable(primary.fileno(), self._asked, REST_PAUSE)
            else:
                await _until_readable(primary.fileno(), asyncio.Event(), PAUSE)
        async for _ in primary.notifies(timeout=0, stop_after=1):
            notified = True
        return notified

    async def read(self, primary: Connection) -> None:
        """Reads the state once, and tells the subscribers if it has changed."""
        began, counted = time.monotonic(), commits.count()
        # psycopg takes ten seconds to give up a query that a hanging server does not let it cancel.
        late = asyncio.get_running_loop().call_later(LATE, self._is_late)
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                known = [token.pk for token in list(sdk_tokens.values())]  # a copy: threads add to them
                state = await read_state(primary, self._sdk, {*self._used, *known})
        finally:
            late.cancel()
        before, self._read_at, self._took = self._state, began, time.monotonic() - began
        self._commits = counted
        if state == before:
            return
        self._state = state
        for subscriber in list(self._subscribers):
            try:
                subscriber(before, state)
            except Exception:
                log.exception("A subscriber failed")

    def _is_late(self) -> None:
        if not outages.reach.is_lost:
            self._losing = asyncio.ensure_future(self._lost())

    async def _lost(self) -> None:
        """The database was not reached twice, or does not answer."""
        outages.reach.note_lost()
        log.error("The database cannot be reached: SDKs are answered from memory, everything else with 503")
        await asyncio.to_thread(outages.set_patience)

    async def _reached(self) -> None:
        was_lost, seconds = outages.reach.is_lost, outages.reach.count_seconds_without()
        outages.reach.note_reached()
        if was_lost:
            log.warning("The database is reached again, after %.0f s", seconds)
            await asyncio.to_thread(outages.set_patience)

    async def _note_uses(self) -> None:
        """Once a minute: writes when tokens were last used, and forgets those that no longer are."""
        now = time.monotonic()
        if now - self._noted_at < NOTE_USES:
            return
        used = [token for token, then in self._used.items() if then >= self._noted_at]
        self._used = {token: then for token, then in self._used.items() if now - then < TOKEN_IDLE}
        self._noted_at = now
        if used:
            await asyncio.to_thread(_write_uses, used)


def _write_uses(tokens: list[int]) -> None:
    try:
        with committed_locally():
            note_uses_of_ids(tokens)
    except DatabaseError:
        log.exception("Last-used times of tokens are not written")
    finally:
        connections.close_all()  # this thread's: it goes back to the pool


@asynccontextmanager
async def _connected() -> AsyncIterator[Connection]:
    """A connection to the primary database, which listens."""
    async with await connect(DEFAULT_DB_ALIAS, NAME) as primary:
        await primary.execute(f"LISTEN {CHANNEL}")
        yield primary


async def _until_readable(descriptor: int, woken: asyncio.Event, seconds: float) -> None:
    """Waits until it is, or the event is set. psycopg, to be interruptible, would look ten times a second."""
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, woken.set)
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)


watcher = Watcher()
