"""Receives request bodies, each with a deadline, within a memory limit per worker.

API bodies that are not small, and all bodies above the ordinary limit, are received from authenticated
callers only. Console forms are received from anyone: a form sent after the session has ended is shown again
after login.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings
from granian.rsgi import ProtocolClosed, ProtocolError

from flagadmin.core import errors
from flagadmin.core.http.json_bodies import too_large
from flagadmin.core.http.request_bodies import limit_at

APIS = ("/api/", "/ofrep/")  # of known callers
RECEIVE_TIMEOUT = 10.0  # for any body; a larger one must then arrive at BYTES_PER_SECOND
BYTES_PER_SECOND = 100_000
SMALL_BODY = 65_536  # bytes; received in one call
MAX_BYTES = 300_000_000  # of bodies that are not small, in one worker
MAX_LARGE_BODIES = 4  # above the ordinary limit, at the same time in one worker; others wait
SLOT_TIMEOUT = 30.0


class BodyReceiver:
    """Receives a worker's bodies. ``check_known`` raises AuthenticationRequired for anonymous callers."""

    def __init__(self, check_known: Callable[[Any], Awaitable[None]]) -> None:
        self._check_known = check_known
        self._slots = asyncio.Semaphore(MAX_LARGE_BODIES)
        self._bytes = 0

    @asynccontextmanager
    async def receive(self, scope: Any, protocol: Any) -> AsyncIterator[bytes]:
        """The whole body, counted as memory in use until the context ends.

        Raises AuthenticationRequired, PayloadTooLarge, RequestTimeout, ServiceUnavailable (too many bodies), and
        EOFError if the client has disconnected.
        """
        declared = int(scope.headers.get("content-length") or 0)
        ordinary = 0 < declared <= settings.BODY_LIMIT
        limit = settings.BODY_LIMIT if ordinary else limit_at(scope.path)
        if declared > limit:
            raise too_large(limit)
        if not 0 < declared <= SMALL_BODY and (scope.path.startswith(APIS) or limit > settings.BODY_LIMIT):
            limit = await self._limit_for_caller(scope, declared, limit)
        if limit <= settings.BODY_LIMIT:
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
        small = 0 < declared <= SMALL_BODY
        try:
            body = await (_receive_small(protocol) if small else self._receive_large(protocol, limit))
        except TimeoutError:
            raise errors.RequestTimeout from None
        except (ProtocolClosed, ProtocolError):
            raise EOFError from None
        try:
            if len(body) < declared:
                raise EOFError
            yield body
        finally:
            self._bytes -= 0 if small else len(body)

    async def _receive_large(self, protocol: Any, limit: int) -> bytes:
        """Adds the size of the body to the bytes in memory; the caller subtracts it later."""
        chunks, size = list[bytes](), 0
        begin = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(begin + RECEIVE_TIMEOUT) as deadline:
                async for chunk in protocol:
                    chunks.append(chunk)
                    size += len(chunk)
                    self._bytes += len(chunk)
                    if size > limit:
                        raise too_large(limit)
                    if self._bytes > MAX_BYTES:
                        raise too_many_bodies()
                    deadline.reschedule(begin + RECEIVE_TIMEOUT + size / BYTES_PER_SECOND)
        except BaseException:
            self._bytes -= size
            raise
        return b"".join(chunks)


def too_many_bodies() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable(
        "Too many large bodies are being received. Try again later.", headers={"Retry-After": "30"}
    )


async def _receive_small(protocol: Any) -> bytes:
    async with asyncio.timeout(RECEIVE_TIMEOUT):
        body: bytes = await protocol()
    return body
