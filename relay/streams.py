"""Streams: report changes, or the fact of a change, and end when their token changes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from flagadmin.core.errors import AppError
from flagadmin.core.server.event_streams import (
    CONTENT_TYPE,
    HEADERS,
    EventStream,
    EventStreams,
    make_event_parts,
)
from flagadmin.core.server.loop_routes import Headers, Ready, StreamRequest
from relay.copy import Copy
from relay.http import prepare, read_path, respond_error
from relay.tokens import Scope, Token, Tokens
from sdk.ofrep.refetches import Refetches, State, make_state
from sdk.streaming.scope_streams import CONNECTED, UPDATED, ScopeStreams, Step, tell_changes

MAX_STREAMS = 20_000

Opened = Callable[[EventStream], Callable[[], None]]


class Subscription(NamedTuple):
    """The request of a stream: the token at that time, and the client's version."""

    token: Token
    version: int | None

    @property
    def scope(self) -> Scope:
        return self.token.scope


class Beginning:
    """The first event of a stream, in parts. ``stream`` is called once the client has read it."""

    def __init__(self, stream: Opened, parts: Iterable[bytes] = ()) -> None:
        self.stream, self._parts = stream, parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)


class Streams:
    """All methods are called in the event loop."""

    def __init__(self, tokens: Tokens, copy: Copy) -> None:
        self._tokens, self._copy = tokens, copy
        self._open = EventStreams(lambda: MAX_STREAMS)
        self._stopping = asyncio.Event()
        self._refetches = Refetches(self._read_state)
        self._of_sdks = ScopeStreams(tell_changes(self._find_steps))
        self._of_providers = ScopeStreams(self._refetches.update)
        copy.when_changed = self._look

    def __len__(self) -> int:
        return len(self._open)

    async def serve(
        self, begin: Callable[[], Awaitable[Beginning]], scope: Any, protocol: Any, headers: Headers
    ) -> None:
        """Sends the result of ``begin``, or the error that it raises, and keeps the response open."""

        async def ask() -> tuple[Ready, Beginning | None]:
            try:
                self._open.check_room()
                return Ready(200, [("Content-Type", CONTENT_TYPE), *HEADERS.items(), *headers]), await begin()
            except AppError as error:
                refusal = respond_error(read_path(scope), error)
                return refusal._replace(headers=refusal.headers + headers), None

        request = StreamRequest(scope, protocol, self._stopping, ask)
        await self._open.serve(request, lambda opened, stream: opened(stream))

    def begin_changes(self, token: Token, version: int | None) -> Beginning:
        """Begins a stream to SDKs, with everything or with the changes since the version."""
        changes = self._copy.changes(token.scope)
        assert changes is not None
        parts = make_event_parts(CONNECTED, changes.events(version).parts(), identifier=changes.version)
        return Beginning(partial(self._opened, self._of_sdks, Subscription(token, changes.version)), parts)

    def begin_refetches(self, token: Token, version: int | None) -> Beginning:
        """Begins a stream that tells OpenFeature providers to refetch, unless the version is the same."""
        return Beginning(partial(self._opened, self._of_providers, Subscription(token, version)))

    def _opened(
        self, streams: ScopeStreams, subscription: Subscription, stream: EventStream
    ) -> Callable[[], None]:
        closed = streams.opened(subscription, stream)
        if not self._may_stay(subscription):
            stream.end()
        return closed

    def _may_stay(self, subscription: Subscription) -> bool:
        return self._tokens.get(subscription.token.secret) == subscription.token

    def _look(self) -> None:
        """Called when tokens or flags may have changed."""
        for streams in (self._of_sdks, self._of_providers):
            streams.end_invalid(self._may_stay)
            streams.bring_all_up_to_date()

    async def _find_steps(self, scope: Scope, versions: Collection[int | None]) -> dict[int | None, Step]:
        changes = self._copy.changes(scope)
        if changes is None:  # no token can read them any more
            return {}
        latest = changes.version
        return {
            version: (
                latest,
                tuple(make_event_parts(UPDATED, changes.events(version).parts(), identifier=latest)),
            )
            for version in versions
            if version != latest
        }

    async def _read_state(self, scope: Scope) -> State:
        prepared = await prepare(await self._copy.find_part(scope))
        return make_state(prepared.state, prepared.snapshot)

    async def keep_alive(self) -> None:
        """A task."""
        await self._open.keep_alive()

    async def watch_clock(self) -> None:
        """A task."""
        await self._refetches.watch_clock(self._of_providers)

    def end(self) -> None:
        """Ends all streams, because the relay stops."""
        self._stopping.set()
