"""Sends SDKs what changed in their flags, as the events of a delta."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from flagadmin.core.db.replica import read_for_sdks
from flagadmin.core.server.event_streams import make_event, streams
from flagadmin.core.server.loop_routes import StreamRequest
from sdk.delta.scope import Scope
from sdk.delta.states import states
from sdk.watcher.token_streams import Listener, TokenStreams
from sdk.watcher.watcher import watcher

CONNECTED, UPDATED = "unleash-connected", "unleash-updated"
NOTHING = b'{"events":[]}'

_threads = ThreadPoolExecutor(4, thread_name_prefix="streams")

# The version a stream has next, and the event that takes it there, if it needs one.
Step = tuple[int, bytes | None]


async def stream(request: StreamRequest) -> None:
    """Handles the path in the event loop."""
    await streams.serve(request, sdk_streams.opened)


async def _update(scope: Scope, listeners: Collection[Listener]) -> None:
    """Serializes once what streams of the same version lack."""
    by_version: dict[int | None, list[Listener]] = defaultdict(list)
    for listener in listeners:
        by_version[listener.version].append(listener)
    steps = await asyncio.get_running_loop().run_in_executor(_threads, _steps, scope, list(by_version))
    for version, (next_version, data) in steps.items():
        for listener in by_version[version]:
            if not listener.stream.is_busy:
                listener.version = next_version
                if data is not None:
                    await listener.stream.send(data)


def _steps(scope: Scope, versions: Iterable[int | None]) -> dict[int | None, Step]:
    """Runs in a thread, because it queries the database."""
    try:
        state = states.get(scope)
        read_for_sdks(lambda using: state.bring_up_to_date(None, using=using))
        steps: dict[int | None, Step] = {}
        for version in versions:
            next_version, events = state.events(version)
            data = make_event(UPDATED, events.body, identifier=next_version) if events else None
            steps[version] = next_version, data
        return steps
    finally:
        connections.close_all()


sdk_streams = TokenStreams(watcher, _update)
