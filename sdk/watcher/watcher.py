"""Keeps, in each worker's event loop, the state that shows whether an answer is still right.

Woken by the database's notifications, and otherwise twice a second, `Watcher` reads the revisions of all projects
and the tokens in use. It pauses while there are no requests. `state` is None unless the latest read began less than
SURE_SECONDS ago. So comparing with it refuses a revoked token and shows a change within that time, even if
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
from flagadmin.core.db.commits import CHANNEL
from flagadmin.core.db.connections import Connection, connect
from flagadmin.core.db.outages import has_other_database
from flagadmin.core.db.standby import committed_locally
from flagadmin.core.errors import AuthenticationRequired
from groups.models import ApiToken
from groups.tokens import note_uses_of_ids, read_used_tokens, sdk_tokens, token_memory
from sdk.base import TokenScope, read_token_scope
from sdk.watcher.state import NAME, ReplicaReader, State, read_state

log = logging.getLogger("flagadmin.watcher")

SURE_SECONDS = 1.0
PAUSE = 0.4  # seconds between reads without a notification
# After this time without requests and streams, the next request wakes the watcher.
RESTS_AFTER = 90.0  # seconds, longer than the interval between two polls of an SDK
REST_PAUSE = 3.0
# The least and the greatest pause between reads, in seconds; in between it is twice the duration of the read. A script
# may change a hundred flags a second, and with 2,000 tokens a read takes 13 ms of CPU time.
BREATHER = (0.005, 0.1)
READ_TIMEOUT = 2.0
LATE = 5.0  # seconds after which a read counts as a loss of the database
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
        self._used: dict[int, float] = {}  # tokens in use, with the time of the last use
        self._noted_at = time.monotonic()
        self._commits = 0  # counted when that read began
        self._subscribers: list[Subscriber] = []
        self._sdk = ReplicaReader()
        self._asked_at = time.monotonic()
        self._asked = asyncio.Event()  # while it pauses
        self._losing: asyncio.Future[None] | None = None  # kept so that it is not collected

    @property
    def state(self) -> State | None:
        """The state of at most SURE_SECONDS ago, or None if nothing is certain.

        The same object as long as nothing changes. None after a commit on this machine, or a notification from
        another, until that has been read.
        """
        self._asked_at = time.monotonic()
        self._asked.set()
        certain = self._asked_at - self._read_at < SURE_SECONDS and commits.count() == self._commits
        return self._state if certain else None

    @property
    def latest(self) -> State | None:
        """The state read last, whether it is certain or not."""
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
        """Calls ``subscriber(before, after)`` in the loop after each read that found a change.

        ``before`` is None the first time. An outage of the database loses nothing: the next read includes its changes.
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
                            self._doubt()
                        await self.read(primary)
                        await self._reached()
                        await self._note_uses()
            except (psycopg.Error, DatabaseError, OSError, TimeoutError) as error:
                if pause == RECONNECT[0]:
                    log.warning("Changes are not watched: %s", str(error).strip() or type(error).__name__)
                elif not outages.reach.is_lost:
                    await self._lost()
            finally:
                self._doubt()
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, RECONNECT[1])

    def _doubt(self) -> None:
        """Makes everything uncertain until the next read."""
        self._read_at = float("-inf")
        token_memory.forget()

    async def _wait_for_notification(self, primary: Connection) -> bool:
        """Whether a notification arrived before the next read is due."""
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
        # psycopg takes ten seconds to give up a query if a hanging server does not let it cancel.
        late = asyncio.get_running_loop().call_later(LATE, self._is_late)
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                known = [token.pk for token in list(sdk_tokens.values())]  # a copy: threads add to them
                callers = await read_used_tokens(primary)
                state = await read_state(primary, self._sdk, {*self._used, *known})
        finally:
            late.cancel()
        token_memory.learn(callers, began=began, committed=counted)
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
        """The database failed twice in succession, or does not answer."""
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
        """Once a minute: stores the last-used times of tokens, and drops unused tokens."""
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
        connections.close_all()  # this thread's connection returns to the pool


@asynccontextmanager
async def _connected() -> AsyncIterator[Connection]:
    """A connection to the primary database that listens for notifications."""
    async with await connect(DEFAULT_DB_ALIAS, NAME) as primary:
        await primary.execute(f"LISTEN {CHANNEL}")
        yield primary


async def _until_readable(descriptor: int, woken: asyncio.Event, seconds: float) -> None:
    """Waits until it is readable, or the event is set. psycopg, to be interruptible, would poll ten times a second."""
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


def token_scope(token: ApiToken, *, using: str) -> TokenScope:
    """The scope as read by `read_token_scope`; during an outage, the watcher's last one.

    Raises AuthenticationRequired if the watcher knows that the token was revoked, ServiceUnavailable if it has not
    seen the token yet, and the database's errors if `read_for_sdks` can ask the other database.
    """

    def read() -> TokenScope:
        return read_token_scope(token, using=using)

    if has_other_database(using):
        return read()
    return outages.read(read, lambda: _find_watched_scope(token), using=using)


def _find_watched_scope(token: ApiToken) -> TokenScope | None:
    state = watcher.latest
    if state is None or token.pk not in state.tokens:
        return None
    watched = state.tokens[token.pk]
    if watched is None or watched.secret_hash != token.secret_hash:
        raise AuthenticationRequired("API token not found.")
    return state.scope_of(watched)
