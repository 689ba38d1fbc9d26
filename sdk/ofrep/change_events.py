"""The streams of this worker that tell OpenFeature's providers to ask again."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from playground.snapshot_cache import load_snapshot_at
from projects.revision import read_revisions
from sdk.delta.scope import Scope
from sdk.ofrep.refetches import Refetches, State, make_state
from sdk.watcher.token_streams import TokenStreams
from sdk.watcher.watcher import watcher

_threads = ThreadPoolExecutor(2, thread_name_prefix="ofrep events")


async def _read_state(scope: Scope) -> State:
    return await asyncio.get_running_loop().run_in_executor(_threads, read_state, scope)


def read_state(scope: Scope) -> State:
    """Runs in a thread, because it queries the database."""
    try:
        current = read_revisions(scope.projects)
        snapshot = load_snapshot_at(current, scope.environment).snapshot
        return make_state(sorted(current.items()), snapshot)
    finally:
        connections.close_all()


_refetches = Refetches(_read_state)
change_events = TokenStreams(watcher, _refetches.update)


async def watch_clock() -> None:
    """A task of the event loop."""
    await _refetches.watch_clock(change_events)
