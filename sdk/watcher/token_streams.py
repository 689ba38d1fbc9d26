"""Open streams of SDK tokens: told when their projects change, ended when their token no longer is what it was."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from flagadmin.core.db.outages import reach
from flagadmin.core.server.event_streams import EventStream, retry
from groups.models import ApiToken
from sdk.delta.scope import Scope
from sdk.watcher.state import State, find_changed_projects
from sdk.watcher.watcher import Watcher

log = logging.getLogger("flagadmin.streams")

USE_TOKENS = 60.0  # seconds between telling the watcher which tokens are in use
TRY_AGAIN = 1.0  # seconds after an update that failed
TOO_MANY_TOKENS = 30_000  # milliseconds until a client of a token that cannot be watched connects again


@dataclass(frozen=True, slots=True)
class Subscription:
    """The request of a stream: the token, as it was, and the version that the client has."""

    token: int
    kind: str
    secret_hash: str
    expires_at: datetime | None
    scope: Scope
    version: int | None = field(default=None, compare=False)
    holds: object = field(default=None, compare=False)
    """Kept for as long as the stream is open."""

    def is_valid(self, state: State) -> bool:
        """Whether the token still is what it was. Otherwise the client connects again, and gets what is right."""
        token = state.tokens[self.token]
        if token is None or (token.kind, token.secret_hash) != (self.kind, self.secret_hash):
            return False
        return token.expires_at == self.expires_at and Scope.of(state.scope_of(token)) == self.scope


def subscription(
    token: ApiToken, scope: Scope, version: int | None = None, holds: object = None
) -> Subscription:
    return Subscription(token.pk, token.kind, token.secret_hash, token.expires_at, scope, version, holds)


class Listener:
    """An open stream, and the version that it has been told."""

    __slots__ = ("stream", "subscription", "version")

    def __init__(self, stream: EventStream, subscription: Subscription) -> None:
        self.stream = stream
        self.subscription = subscription
        self.version = subscription.version


Update = Callable[[Scope, Collection[Listener]], Awaitable[None]]


class TokenStreams:
    """The streams of this worker that are told the same way. ``update`` tells those of a scope what they lack.

    It is called when a stream is opened, when projects of the scope have changed, and for streams that were busy
    then, when their clients have read enough; not twice at once for a scope, and again after a second if it fails.
    All methods are called in the worker's event loop.
    """

    def __init__(self, watcher: Watcher, update: Update) -> None:
        self._watcher = watcher
        self._update = update
        self._listeners: dict[Scope, set[Listener]] = {}
        self._updating: dict[Scope, asyncio.Task[None]] = {}
        self._outdated: set[Scope] = set()
        watcher.subscribe(self._changed)

    def __contains__(self, scope: Scope) -> bool:
        """Whether there are streams of this scope."""
        return scope in self._listeners

    def opened(self, subscription: Subscription, stream: EventStream) -> Callable[[], None]:
        """Adds a stream. The result removes it."""
        listener = Listener(stream, subscription)
        stream.when_read = lambda: self.bring_up_to_date(subscription.scope)
        self._listeners.setdefault(subscription.scope, set()).add(listener)
        if not self._watcher.use(subscription.token):
            stream.end(retry(TOO_MANY_TOKENS))
        expiry = self._end_at(stream, subscription.expires_at)
        state = self._watcher.latest
        if state is not None and subscription.token in state.tokens and not subscription.is_valid(state):
            stream.end()
        self.bring_up_to_date(subscription.scope)

        def closed() -> None:
            if expiry is not None:
                expiry.cancel()
            listeners = self._listeners[subscription.scope]
            listeners.discard(listener)
            if not listeners:
                del self._listeners[subscription.scope]

        return closed

    def _end_at(self, stream: EventStream, moment: datetime | None) -> asyncio.TimerHandle | None:
        if moment is None:
            return None
        seconds = (moment - timezone.now()).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, seconds), stream.end)

    def _changed(self, before: State | None, after: State) -> None:
        changed = None if before is None else find_changed_projects(before, after)
        for scope, listeners in self._listeners.items():
            subscriptions = {listener.subscription for listener in listeners}
            invalid = {s for s in subscriptions if s.token in after.tokens and not s.is_valid(after)}
            for listener in listeners:
                if listener.subscription in invalid:
                    listener.stream.end()
            if changed is None or (
                changed if scope.projects is None else changed.intersection(scope.projects)
            ):
                self.bring_up_to_date(scope)

    def bring_up_to_date(self, scope: Scope) -> None:
        self._outdated.add(scope)
        if scope not in self._updating:
            self._updating[scope] = asyncio.ensure_future(self._run_updates(scope))

    async def _run_updates(self, scope: Scope) -> None:
        try:
            while scope in self._outdated:
                self._outdated.discard(scope)
                listeners = [
                    listener for listener in self._listeners.get(scope, ()) if not listener.stream.is_busy
                ]
                if listeners:
                    try:
                        await self._update(scope, listeners)
                    except Exception:
                        if not reach.is_lost:
                            log.exception("Streams could not be told of a change")
                        self._outdated.add(scope)
                        await asyncio.sleep(TRY_AGAIN)
        finally:
            del self._updating[scope]

    async def use_tokens(self) -> None:
        """A task of the event loop: keeps the tokens of open streams among those that the watcher reads."""
        while True:
            await asyncio.sleep(USE_TOKENS)
            for listeners in self._listeners.values():
                for token in {listener.subscription.token for listener in listeners}:
                    self._watcher.use(token)
