"""The watcher's reads of what SDK answers are made from: on the replica if there is one that answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from django.db import DatabaseError

from flagadmin.core.db.async_connections import Connection, connect
from flagadmin.core.db.replica import REPLICA, has_replica, replica
from sdk.watcher.state import SdkState, read_sdk_state

log = logging.getLogger("flagadmin.replica")

T = TypeVar("T")

NAME = "flagadmin watcher"  # the connection's application_name
LATE = 1.0  # seconds of a read after which the replica counts as lost
RETRY = 1.0  # seconds between attempts to return to it

FAILURES = (psycopg.Error, DatabaseError, OSError, TimeoutError)


class ReplicaReader:
    """Keeps one connection to the replica, and says in `flagadmin.core.db.replica` whether it answers."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._returning: asyncio.Task[None] | None = None
        self._revisions: dict[str, int] = {}  # of the primary, read last while the replica is lost

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self._returning is not None:
                self._returning.cancel()
                self._returning = None
            await self._close()

    async def read(self, primary: Connection, tokens: list[int]) -> SdkState:
        """Reads from the replica, or from the primary if there is none or it does not answer."""
        if has_replica() and not replica.is_lost:
            try:
                return await _is_within(LATE, self._read_replica(tokens))
            except FAILURES as error:
                log.debug("The replica failed: %s", error)
                replica.note_lost()
                await self._close()
        state = await read_sdk_state(primary, tokens)
        if replica.is_lost:
            self._revisions = state.revisions
            if self._returning is None or self._returning.done():
                self._returning = asyncio.create_task(self._return())
        return state

    async def _read_replica(self, tokens: list[int]) -> SdkState:
        if self._connection is None:
            self._connection = await connect(REPLICA, NAME)
        return await read_sdk_state(self._connection, tokens)

    async def _return(self) -> None:
        """Waits until the replica answers and has what SDKs have already got from the primary."""
        while replica.is_lost:
            await asyncio.sleep(RETRY)
            revisions = self._revisions
            try:
                state = await _is_within(LATE, self._read_replica([]))
            except FAILURES as error:
                log.debug("The replica still fails: %s", error)
                await self._close()
            else:
                if all(
                    state.revisions.get(project, 0) >= revision for project, revision in revisions.items()
                ):
                    replica.note_reached()

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _is_within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Raises TimeoutError without waiting for the cancellation: psycopg tries to cancel a query for ten seconds."""
    task = asyncio.create_task(work)
    task.add_done_callback(_forget_failure)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


def _forget_failure(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
