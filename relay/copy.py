"""Keeps a copy of the upstream's flags for each scope, also on disk, and notifies of changes.

It also listens to the upstream's streams, which report changes at once; polling continues as well.
"""

import asyncio
import functools
import hashlib
import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from flagadmin.core.errors import ServiceUnavailable
from relay.flags import Changes, Flags, Texts, read_flags
from relay.storage import Storage
from relay.tokens import BACKEND, Answer, Ask, Headers, Scope, Token, Tokens, UpstreamFailed

log = logging.getLogger("flagadmin.relay")

PREFIX, CONFIRMED = "flags-", "confirmed-"
FEATURES = "/api/client/features"
AGAIN = "The upstream answers again"
SOON = 0.5  # seconds
MAX_AT_ONCE = 8  # scopes fetched at the same time


class Copy:
    """All methods are called in the event loop."""

    def __init__(self, storage: Storage, ask: Ask, tokens: Tokens, *, interval: float) -> None:
        self._storage, self._ask, self._tokens = storage, ask, tokens
        self._interval = interval
        self._flags: dict[Scope, Flags] = {}
        self._changes: dict[Scope, Changes] = {}
        self._narrowed: dict[Scope, tuple[Flags, Flags]] = {}  # the source flags and the narrowed ones
        self._narrowing: dict[Scope, asyncio.Task[None]] = {}
        self._fetching: dict[Scope, asyncio.Task[None]] = {}
        self._rested_at: dict[Scope, float] = {}  # by the event loop's clock
        self.when_changed: Callable[[], object] = lambda: None
        """Called when tokens or flags may have changed."""
        self.heard_at = 0.0
        """The time of the upstream's last answer, in seconds since 1970."""
        self._faults: dict[
            Scope | None, str
        ] = {}  # by the subject of the question: a scope, or None for tokens
        self._hurry = asyncio.Event()
        self._read_stored()
        tokens.when_known, tokens.when_asked = self.fetch, functools.partial(self._note, None)

    def _read_stored(self) -> None:
        for name in self._storage.names(PREFIX):
            head, _, body = (self._storage.read(name) or b"").partition(b"\n")
            try:
                stored = orjson.loads(head)
                scope = str(stored["environment"]), tuple(stored["projects"])
                flags = read_flags(scope, body, stored["etag"], before=None, fetched_at=stored["fetchedAt"])
                flags.version = int(stored["version"])
                flags.fetched_at = max(flags.fetched_at, self._read_confirmed(flags))
            except (orjson.JSONDecodeError, KeyError, TypeError, UpstreamFailed):
                log.error("A file of flags cannot be read: %s", name)
                continue
            self._flags[scope] = flags
            self._changes[scope] = Changes(flags.version, Texts(flags))

    def _read_confirmed(self, flags: Flags) -> float:
        """When the upstream last confirmed these flags, in seconds since 1970; 0 if it never did."""
        etag, _, confirmed_at = (self._storage.read(_name_confirmed(flags.scope)) or b"").partition(b"\n")
        with suppress(ValueError):
            return float(confirmed_at) if etag.decode() == flags.etag else 0.0
        return 0.0

    def _confirm(self, flags: Flags) -> None:
        """Stores the time separately from the flags, which may be large, so that their age is right after a restart."""
        flags.fetched_at = time.time()
        self._storage.write(_name_confirmed(flags.scope), f"{flags.etag}\n{flags.fetched_at}".encode())

    @property
    def scopes(self) -> int:
        return len(self._flags)

    def age(self) -> float:
        """Seconds since the oldest flags in use were last confirmed."""
        ages = [
            time.time() - self._flags[scope].fetched_at for scope in self._needed() if scope in self._flags
        ]
        return max(0.0, *ages) if ages else 0.0

    async def find(self, token: Token) -> Flags:
        """The flags that the token can read. Raises ServiceUnavailable if there are none yet."""
        if token.kind != BACKEND:
            return await self.find_part(token.scope)
        if token.scope not in self._flags:
            await self.fetch(token)
        return self.get(token.scope, is_whole=True)

    async def find_part(self, scope: Scope) -> Flags:
        """Like `get`, but narrows flags in a thread, once for all waiting callers. Raises ServiceUnavailable."""
        source, kept = self._flags.get(scope) or self._find_wider(scope), self._narrowed.get(scope)
        if source is None or source.scope == scope:
            return self.get(scope)
        if kept is None or kept[0] is not source:
            task = self._narrowing.get(scope)
            if task is None:
                task = self._narrowing[scope] = asyncio.ensure_future(self._narrow(scope, source))
                task.add_done_callback(lambda _: self._narrowing.pop(scope, None))
            await asyncio.shield(task)
            return self.get(scope)
        return kept[1]

    async def _narrow(self, scope: Scope, source: Flags) -> None:
        self._narrowed[scope] = source, await asyncio.to_thread(source.narrowed, scope[1])

    def get(self, scope: Scope, *, is_whole: bool = False) -> Flags:
        """The flags of a scope; unless ``is_whole``, part of a wider scope suffices. Raises ServiceUnavailable."""
        source = self._flags.get(scope) or (None if is_whole else self._find_wider(scope))
        if source is None:
            reason = self.fault or "It has no backend token for this environment and these projects."
            raise ServiceUnavailable(f"This relay has no flags for this token yet. {reason}")
        if source.scope == scope:
            return source
        kept = self._narrowed.get(scope)
        if kept is None or kept[0] is not source:
            kept = self._narrowed[scope] = source, source.narrowed(scope[1])
        return kept[1]

    def _find_wider(self, scope: Scope) -> Flags | None:
        wider = (known for known in self._tokens.all() if known.kind == BACKEND and known.covers(scope))
        return next((self._flags[known.scope] for known in wider if known.scope in self._flags), None)

    def changes(self, scope: Scope) -> Changes | None:
        return self._changes.get(scope)

    async def fetch(self, token: Token, *, anew: bool = False) -> None:
        """Fetches the flags of a backend token, once for all waiting callers. Records and logs failures.

        With `anew`, does not reuse the answer to an earlier request.
        """
        if token.kind != BACKEND:
            return
        task = self._fetching.get(token.scope)
        if anew and task is not None:
            await asyncio.wait([task])
            task = self._fetching.get(token.scope)
        if task is None:
            task = self._fetching[token.scope] = asyncio.ensure_future(self._fetch(token))
            task.add_done_callback(lambda _: self._fetching.pop(token.scope, None))
        await asyncio.shield(task)

    async def _fetch(self, token: Token) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(self._rested_at.get(token.scope, 0.0) - now())
        before = self._flags.get(token.scope)
        headers = {"If-None-Match": before.etag} if before else {}
        try:
            answer = await self._ask("GET", FEATURES, token=token.secret, headers=headers)
            if answer.status == 304 and before is not None:
                await asyncio.to_thread(self._confirm, before)
            elif answer.status == 200:
                began = now()
                await self._take_over(*await asyncio.to_thread(self._read, token.scope, answer, before))
                # Rests as long as that took, so that SDKs get half of the processor while flags change constantly.
                self._rested_at[token.scope] = 2 * now() - began
            else:
                raise UpstreamFailed(f"The upstream answered {answer.status} to a question about flags.")
        except UpstreamFailed as error:
            self._note(token.scope, error)
            return
        self._note(token.scope, None)

    def _read(self, scope: Scope, answer: Answer, before: Flags | None) -> tuple[Flags, Texts]:
        """Parses the upstream's answer and stores it. Runs in a thread, because both may take a while."""
        flags = read_flags(scope, answer.body, answer.headers.get("ETag") or "", before=before)
        self._store(flags)
        changes = self._changes.get(scope)
        return flags, Texts(flags, changes.texts if changes else None)

    async def _take_over(self, flags: Flags, texts: Texts) -> None:
        changes = self._changes.get(flags.scope)
        if changes is None or flags.version <= changes.version:  # the upstream's versions have restarted
            self._changes[flags.scope] = Changes(flags.version, texts)
        else:
            changes.advance(flags.version, texts)
        before = self._flags.get(flags.scope)
        if before is not None and before.is_prepared:
            await asyncio.to_thread(flags.prepare, before)
        self._flags[flags.scope] = flags
        self.when_changed()

    def _store(self, flags: Flags) -> None:
        head = {
            "environment": flags.scope[0],
            "projects": flags.scope[1],
            "etag": flags.etag,
            "version": flags.version,
            "fetchedAt": flags.fetched_at,
        }
        content = flags.body(knows_segments=True).body
        self._storage.write(_name_file(flags.scope), orjson.dumps(head), b"\n", content)

    def _needed(self) -> dict[Scope, Token]:
        """A token for each scope to keep."""
        return {token.scope: token for token in self._tokens.all() if token.kind == BACKEND}

    async def keep_current(self) -> None:
        """A task that looks again after each interval, and soon after `look_soon`."""
        while True:
            self._hurry.clear()
            await self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._interval * random.uniform(0.9, 1.0))
            # Random, so that relays do not all ask an upstream at once after its restart.
            await asyncio.sleep(random.uniform(0.0, SOON))

    def look_soon(self) -> None:
        """Called when a stream of the upstream has ended, because its token may have been revoked."""
        self._hurry.set()

    async def look(self) -> None:
        """Asks about all tokens, then for the flags of all scopes, and drops flags that no token can read any more."""
        with suppress(UpstreamFailed):  # already recorded
            await self._tokens.check_all()
            self._drop_unneeded()
        limit = asyncio.Semaphore(MAX_AT_ONCE)

        async def fetch(token: Token) -> None:
            async with limit:
                await self.fetch(token, anew=True)

        await asyncio.gather(*(fetch(token) for token in self._needed().values()))
        self.when_changed()

    def _drop_unneeded(self) -> None:
        needed = self._needed()
        for scope in [scope for scope in self._flags if scope not in needed]:
            del self._flags[scope]
            self._changes.pop(scope, None)
            self._rested_at.pop(scope, None)
            self._storage.delete(_name_file(scope))
            self._storage.delete(_name_confirmed(scope))
        for about in [scope for scope in self._faults if scope is not None and scope not in needed]:
            del self._faults[about]
        for scope, (source, _) in list(self._narrowed.items()):
            if self._flags.get(source.scope) is not source:
                del self._narrowed[scope]

    @property
    def fault(self) -> str:
        """The current problem with the upstream, or ""."""
        return next(iter(self._faults.values()), "")

    def _note(self, about: Scope | None, failure: UpstreamFailed | None) -> None:
        """Records the outcome of a question to the upstream."""
        before = self.fault
        if failure is not None:
            self._faults[about] = str(failure)
        else:
            self.heard_at = time.time()
            self._faults.pop(about, None)
        if self.fault != before:
            log.warning("%s", f"{self.fault} What was known before is served." if self.fault else AGAIN)


def _name_confirmed(scope: Scope) -> str:
    return CONFIRMED + _name_file(scope).removeprefix(PREFIX)


def _name_file(scope: Scope) -> str:
    return f"{PREFIX}{hashlib.sha256(orjson.dumps(scope)).hexdigest()[:24]}.json"


STREAMING = "/api/client/streaming"
MAX_LISTENERS = 50  # threads
LOOK = 1.0  # seconds between checks for new scopes
SILENCE = 90.0  # seconds, longer than the interval of keep-alive comments
PAUSE = (0.5, 5.0)  # seconds before an ended stream is opened again
WITHOUT = 600.0  # seconds before an upstream without streams is asked again


class Listening:
    """Opens a stream for each scope, in its own thread. ``run`` is a task of the event loop."""

    def __init__(self, address: str, headers: Headers, tokens: Tokens, copy: Copy) -> None:
        self._address = address
        self._headers = dict(headers)
        self._tokens, self._copy = tokens, copy
        self._threads: dict[Scope, threading.Thread] = {}
        self._tasks = set[asyncio.Task[None]]()
        timeout = urllib3.Timeout(connect=5.0, read=SILENCE)
        self._pool = urllib3.PoolManager(maxsize=MAX_LISTENERS, timeout=timeout, retries=False)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for token in self._tokens.all():
                if (
                    token.kind == BACKEND
                    and token.scope not in self._threads
                    and len(self._threads) < MAX_LISTENERS
                ):
                    self._start(token, loop)
            self._threads = {scope: thread for scope, thread in self._threads.items() if thread.is_alive()}
            await asyncio.sleep(LOOK)

    def _start(self, token: Token, loop: asyncio.AbstractEventLoop) -> None:
        def tell() -> None:
            loop.call_soon_threadsafe(self._look, token)

        def look_soon() -> None:
            loop.call_soon_threadsafe(self._copy.look_soon)

        arguments = token, tell, look_soon
        thread = threading.Thread(target=self._listen, args=arguments, name="listening", daemon=True)
        self._threads[token.scope] = thread
        thread.start()

    def _look(self, token: Token) -> None:
        task = asyncio.ensure_future(self._copy.fetch(token, anew=True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _listen(self, token: Token, tell: Callable[[], None], look_soon: Callable[[], None]) -> None:
        """Listens until the stream ends. Then checks the tokens again, which may be the reason."""
        headers = self._headers | {"Authorization": token.secret, "Accept": "text/event-stream"}
        wait = random.uniform(*PAUSE)
        try:
            response = self._pool.request(
                "GET", self._address + STREAMING, headers=headers, redirect=False, preload_content=False
            )
            if response.status != 200:
                wait = WITHOUT
            else:
                for part in response.stream(65_536):
                    if b"data:" in part:
                        tell()
                look_soon()
            response.close()
        except (HTTPError, OSError, ValueError) as error:
            log.debug("A stream of the upstream ended: %s", error)
        threading.Event().wait(wait)
