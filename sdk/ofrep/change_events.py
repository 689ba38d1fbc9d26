"""Tells OpenFeature's providers that flags may have changed, so that they ask again: ``refetchEvaluation``.

Flags change with a revision of their projects, and when a date is reached that a condition compares with the
current time.
"""

import asyncio
import hashlib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import orjson
from django.db import connections
from django.utils import timezone

from flagadmin.core.server.event_streams import make_event, streams
from flagadmin.core.server.loop_routes import StreamRequest
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.snapshot_cache import load_snapshot_at
from projects.revision import read_revisions
from sdk.delta.scope import Scope
from sdk.evaluation.dates_reached import find_dates_reached
from sdk.watcher.token_streams import Listener, TokenStreams
from sdk.watcher.watcher import watcher

REFETCH = b'{"type":"refetchEvaluation"}'
CLOCK_SECONDS = 1.0

_threads = ThreadPoolExecutor(2, thread_name_prefix="ofrep events")


class State(NamedTuple):
    """The state on which the flags of a scope depend: revisions, and the dates that have been reached."""

    revisions: dict[str, int]
    snapshot: Snapshot
    reached: list[tuple[str, bool]]

    @property
    def version(self) -> int:
        """A hash. Two workers have the same for the same state."""
        text = orjson.dumps([sorted(self.revisions.items()), self.reached])
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


class ChangeEvents:
    """All methods are called in the worker's event loop."""

    def __init__(self) -> None:
        self._streams = TokenStreams(watcher, self._update)
        self._timed: dict[Scope, State] = {}
        """The known state of each scope with streams, if any condition compares the current time."""

    async def stream(self, request: StreamRequest) -> None:
        """Handles the path in the event loop."""
        await streams.serve(request, self._streams.opened)

    async def use_tokens(self) -> None:
        """A task of the event loop."""
        await self._streams.use_tokens()

    async def watch_clock(self) -> None:
        """A task of the event loop: looks each second whether a date has been reached."""
        while True:
            await asyncio.sleep(CLOCK_SECONDS)
            for scope, state in list(self._timed.items()):
                if scope not in self._streams:
                    del self._timed[scope]
                elif reached(scope, state.snapshot) != state.reached:
                    self._streams.bring_up_to_date(scope)

    async def _update(self, scope: Scope, listeners: Collection[Listener]) -> None:
        state = await asyncio.get_running_loop().run_in_executor(_threads, _read, scope)
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


def _read(scope: Scope) -> State:
    """Runs in a thread, because it queries the database."""
    try:
        current = read_revisions(scope.projects)
        snapshot = load_snapshot_at(current, scope.environment).snapshot
        return State(current, snapshot, reached(scope, snapshot))
    finally:
        connections.close_all()


def reached(scope: Scope, snapshot: Snapshot) -> list[tuple[str, bool]]:
    context = Context({"environment": scope.environment}).at(timezone.now())
    return find_dates_reached(snapshot, context)


change_events = ChangeEvents()
