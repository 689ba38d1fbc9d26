"""Tells OpenFeature providers that flags may have changed, so that they refetch: ``refetchEvaluation``.

Flags change with their definitions, and when time reaches a date in a condition on the current time.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from flagadmin.core.server.event_streams import make_event
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from sdk.evaluation.prepared import find_dates_reached
from sdk.streaming.scope_streams import Listener, ScopeStreams

REFETCH = b'{"type":"refetchEvaluation"}'
CLOCK_SECONDS = 1.0


class State(NamedTuple):
    """The state that determines the flags of a scope: their definitions, and the dates that have been reached."""

    definitions: Any
    """JSON that changes with them, such as the revisions of projects."""
    snapshot: Snapshot
    reached: list[tuple[str, bool]]

    @property
    def version(self) -> int:
        """A hash, equal on all workers for the same state."""
        text = orjson.dumps([self.definitions, self.reached])
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def make_state(definitions: Any, snapshot: Snapshot) -> State:
    return State(definitions, snapshot, find_reached(snapshot))


def find_reached(snapshot: Snapshot) -> list[tuple[str, bool]]:
    context = Context({"environment": snapshot.environment}).at(datetime.now(UTC))
    return find_dates_reached(snapshot, context)


class Refetches:
    """All methods are called in the event loop. ``read_state`` reads the state of a scope."""

    def __init__(self, read_state: Callable[[Any], Awaitable[State]]) -> None:
        self._read_state = read_state
        self._timed: dict[Any, State] = {}
        """The known state of each scope that has streams and a condition on the current time."""

    async def update(self, scope: Any, listeners: Collection[Listener]) -> None:
        state = await self._read_state(scope)
        if state.snapshot.clock:
            self._timed[scope] = state
        else:
            self._timed.pop(scope, None)
        version = state.version
        message = make_event("message", REFETCH, identifier=version)
        for listener in listeners:
            if listener.version != version and not listener.stream.is_busy:
                listener.version = version
                await listener.stream.send(message)

    async def watch_clock(self, streams: ScopeStreams) -> None:
        """A task of the event loop that checks each second whether a date has been reached."""
        while True:
            await asyncio.sleep(CLOCK_SECONDS)
            for scope, state in list(self._timed.items()):
                if scope not in streams:
                    del self._timed[scope]
                elif find_reached(state.snapshot) != state.reached:
                    streams.bring_up_to_date(scope)
