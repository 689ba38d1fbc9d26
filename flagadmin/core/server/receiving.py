"""Receives request bodies, each with a deadline, within a memory limit per worker. Knows no framework.

Bodies of APIs above the small size, and all bodies above the ordinary limit, are accepted only from authenticated
callers. Console forms are accepted from anyone: a form sent after the session has ended is shown again after login.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from granian.rsgi import ProtocolClosed, ProtocolError

from flagadmin.core import errors
from flagadmin.core.errors import RequestTimeout
from flagadmin.core.http.json_bodies import too_large, too_many_bodies

RECEIVE_TIMEOUT = 10.0  # for any body; a larger one must then arrive at BYTES_PER_SECOND
BYTES_PER_SECOND = 100_000
SMALL_BODY = 65_536  # bytes; received in one call, which takes half as long


async def receive_small(protocol: Any, declared: int) -> bytes:
    """Raises RequestTimeout, and EOFError if the client has disconnected."""
    try:
        async with asyncio.timeout(RECEIVE_TIMEOUT):
            body: bytes = await protocol()
    except TimeoutError:
        raise RequestTimeout from None
    except (ProtocolClosed, ProtocolError):
        raise EOFError from None
    if len(body) < declared:
        raise EOFError
    return body


async def receive_parts(protocol: Any, declared: int, add: Callable[[int], None]) -> bytes:
    """Calls `add` with the size of each received part; it may raise. Raises the same errors as `receive_small`."""
    parts, size = list[bytes](), 0
    begin = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(begin + RECEIVE_TIMEOUT) as deadline:
            async for part in protocol:
                parts.append(part)
                size += len(part)
                add(len(part))
                deadline.reschedule(begin + RECEIVE_TIMEOUT + size / BYTES_PER_SECOND)
    except TimeoutError:
        raise RequestTimeout from None
    except (ProtocolClosed, ProtocolError):
        raise EOFError from None
    if size < declared:
        raise EOFError
    return b"".join(parts)


APIS = ("/api/", "/ofrep/")  # larger bodies need an authenticated caller
MAX_BYTES = 300_000_000  # for bodies above the small size, in one worker
MAX_LARGE_BODIES = 4  # bodies above the ordinary limit, at the same time in one worker; others wait
SLOT_TIMEOUT = 30.0


class BodyReceiver:
    """Receives a worker's bodies."""

    def __init__(
        self,
        check_known: Callable[[Any], Awaitable[None]],
        ordinary: int,
        limit_at: Callable[[str], int],
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """``check_known`` raises AuthenticationRequired for anonymous callers. ``ordinary`` is the ordinary limit,
        ``limit_at(path)`` overrides it for a path; ``max_bytes`` limits all bodies together.
        """
        self._check_known = check_known
        self._ordinary, self._limit_at = ordinary, limit_at
        self._max_bytes = max_bytes
        self._slots = asyncio.Semaphore(MAX_LARGE_BODIES)
        self._bytes = 0

    @asynccontextmanager
    async def receive(self, scope: Any, protocol: Any) -> AsyncIterator[bytes]:
        """The whole body, counted as memory in use until the context ends.

        Raises AuthenticationRequired, PayloadTooLarge, RequestTimeout, ServiceUnavailable (too many bodies), and
        EOFError if the client has disconnected.
        """
        declared = int(scope.headers.get("content-length") or 0)
        ordinary = 0 < declared <= self._ordinary
        limit = self._ordinary if ordinary else self._limit_at(scope.path)
        if declared > limit:
            raise too_large(limit)
        if ordinary and declared <= SMALL_BODY:
            yield await receive_small(protocol, declared)
            return
        if not 0 < declared <= SMALL_BODY and (scope.path.startswith(APIS) or limit > self._ordinary):
            limit = await self._limit_for_caller(scope, declared, limit)
        if limit <= self._ordinary:
            async with self._received(protocol, declared, limit) as body:
                yield body
            return
        await self._wait_for_slot()
        try:
            async with self._received(protocol, declared, limit) as body:
                yield body
        finally:
            self._slots.release()

    async def _limit_for_caller(self, scope: Any, declared: int, limit: int) -> int:
        """The caller's limit. Anonymous callers may send SMALL_BODY bytes if no length is declared (chunked).

        Raises AuthenticationRequired for an anonymous caller with a declared length.
        """
        try:
            await self._check_known(scope)
        except errors.AuthenticationRequired:
            if declared:
                raise
            return min(limit, SMALL_BODY)
        return limit

    async def _wait_for_slot(self) -> None:
        try:
            await asyncio.wait_for(self._slots.acquire(), SLOT_TIMEOUT)
        except TimeoutError:
            raise too_many_bodies() from None

    @asynccontextmanager
    async def _received(self, protocol: Any, declared: int, limit: int) -> AsyncIterator[bytes]:
        size = 0  # added to the bytes in memory by this body

        def add(nbytes: int) -> None:
            nonlocal size
            size += nbytes
            self._bytes += nbytes
            if size > limit:
                raise too_large(limit)
            if self._bytes > self._max_bytes:
                raise too_many_bodies()

        try:
            yield await receive_parts(protocol, declared, add)
        finally:
            self._bytes -= size
