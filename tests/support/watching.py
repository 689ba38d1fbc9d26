"""Runs a watcher in a loop of the test's own process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sdk.watcher.watcher import Watcher
from tests.support.event_loop import beside, run

PATIENCE = 60.0


def watching(work: Callable[[Watcher], Awaitable[Any]]) -> Any:
    """Runs the work in a loop beside a watcher."""

    async def both() -> Any:
        watcher = Watcher()
        task = asyncio.create_task(watcher.run())
        try:
            async with asyncio.timeout(PATIENCE):
                return await work(watcher)
        finally:
            task.cancel()
            await asyncio.wait([task])

    return run(both)


beside_watcher = beside(watching)
