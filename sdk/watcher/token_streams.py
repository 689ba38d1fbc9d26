"""Open streams of SDK tokens: get events when their projects change, and end when their token changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.utils import timezone
from prometheus_client import Gauge

from flagadmin.core.db.outages import reach
from flagadmin.core.metrics import process_name, register_sampler
from flagadmin.core.server.event_streams import EventStream, EventStreams, retry
from flagadmin.core.server.loop_routes import StreamRequest
from groups.models import ApiToken
from sdk.delta.states import Scope
from sdk.streaming.scope_streams import ScopeStreams, Update
from sdk.watcher.state import State, find_changed_projects
from sdk.watcher.watcher import Watcher

OPEN = Gauge("flagadmin_streams_open", "Streams that a process keeps open.", ["process"])
USE_TOKENS = 60.0  # seconds between reports of the tokens in use to the watcher
TOO_MANY_TOKENS = 30_000  # milliseconds before a client reconnects whose token cannot be watched


@dataclass(frozen=True, slots=True)
class Subscription:
    """The request of a stream: the token at that time, and the client's version."""

    token: int
    kind: str
    secret_hash: str
    expires_at: datetime | None
    scope: Scope
    version: int | None = field(default=None, compare=False)
    holds: object = field(default=None, compare=False)
    """Kept while the stream is open."""

    def is_valid(self, state: State) -> bool:
        """Whether the token is unchanged. Otherwise the client reconnects and gets the right flags."""
        token = state.tokens[self.token]
        if token is None or (token.kind, token.secret_hash) != (self.kind, self.secret_hash):
            return False
        return token.expires_at == self.expires_at and Scope.of(state.scope_of(token)) == self.scope


def subscription(
    token: ApiToken, scope: Scope, version: int | None = None, holds: object = None
) -> Subscription:
    return Subscription(token.pk, token.kind, token.secret_hash, token.expires_at, scope, version, holds)


streams = EventStreams(lambda: settings.STREAMS_LIMIT)


@register_sampler
def _sample() -> None:
    OPEN.labels(process_name()).set(len(streams))


class TokenStreams(ScopeStreams):
    """The streams of this worker with the same kind of events, for tokens that the watcher reads."""

    def __init__(self, watcher: Watcher, update: Update) -> None:
        super().__init__(update)
        self._watcher = watcher
        watcher.subscribe(self._changed)

    async def serve(self, request: StreamRequest) -> None:
        """Handles a path in the event loop."""
        await streams.serve(request, self.opened)

    def opened(self, subscription: Subscription, stream: EventStream) -> Callable[[], None]:
        """Adds a stream. The result removes it."""
        closed = super().opened(subscription, stream)
        if not self._watcher.use(subscription.token):
            stream.end(retry(TOO_MANY_TOKENS))
        expiry = self._end_at(stream, subscription.expires_at)
        state = self._watcher.latest
        if state is not None and not _may_stay(subscription, state):
            stream.end()

        def close() -> None:
            if expiry is not None:
                expiry.cancel()
            closed()

        return close

    def _end_at(self, stream: EventStream, moment: datetime | None) -> asyncio.TimerHandle | None:
        if moment is None:
            return None
        seconds = (moment - timezone.now()).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, seconds), stream.end)

    def _changed(self, before: State | None, after: State) -> None:
        self.end_invalid(lambda subscription: _may_stay(subscription, after))
        changed = None if before is None else find_changed_projects(before, after)
        for scope in self._listeners:
            if changed is None or (
                changed if scope.projects is None else changed.intersection(scope.projects)
            ):
                self.bring_up_to_date(scope)

    def note_failure(self, error: Exception) -> None:
        if not reach.is_lost:
            super().note_failure(error)

    async def use_tokens(self) -> None:
        """A task of the event loop that keeps the tokens of open streams among those that the watcher reads."""
        while True:
            await asyncio.sleep(USE_TOKENS)
            for listeners in self._listeners.values():
                for token in {listener.subscription.token for listener in listeners}:
                    self._watcher.use(token)


def _may_stay(subscription: Subscription, state: State) -> bool:
    """Whether the token is unchanged, or has not been read yet."""
    return subscription.token not in state.tokens or subscription.is_valid(state)
