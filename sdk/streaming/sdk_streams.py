"""Sends SDKs the changes in their flags, as the events of a delta."""

import asyncio
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from flagadmin.core.db.outages import read_for_sdks
from flagadmin.core.server.event_streams import make_event_parts
from sdk.delta.states import Scope, states
from sdk.streaming.scope_streams import UPDATED, Step, tell_changes
from sdk.watcher.token_streams import TokenStreams
from sdk.watcher.watcher import watcher

_threads = ThreadPoolExecutor(4, thread_name_prefix="streams")


async def _find_steps(scope: Scope, versions: Collection[int | None]) -> dict[int | None, Step]:
    return await asyncio.get_running_loop().run_in_executor(_threads, _make_steps, scope, list(versions))


def _make_steps(scope: Scope, versions: Collection[int | None]) -> dict[int | None, Step]:
    """Runs in a thread, because it queries the database."""
    try:
        state = states.get(scope)
        read_for_sdks(lambda using: state.bring_up_to_date(None, using=using))
        steps: dict[int | None, Step] = {}
        for version in versions:
            next_version, events = state.events(version)
            event = make_event_parts(UPDATED, [events.body], identifier=next_version) if events else ()
            steps[version] = next_version, tuple(event)
        return steps
    finally:
        connections.close_all()


sdk_streams = TokenStreams(watcher, tell_changes(_find_steps))
