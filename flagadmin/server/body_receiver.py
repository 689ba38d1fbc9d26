"""Bodies on their way in: each has a deadline, and those of one worker together have a limited place in memory.

A body for the API that is not small, and any above the ordinary limit, is read only from a caller we know. The console
takes ordinary forms from anybody: one whose session has ended comes back filled in after the login.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings
from granian.rsgi import ProtocolClosed, ProtocolError

from flagadmin import errors
from flagadmin.http.request_bodies import limit_at, too_large

SECONDS = 10.0  # in which any body may arrive; a longer one must keep to the rate after that
BYTES_PER_SECOND = 100_000
SMALL = 65_536  # bytes; read in one go
MOST_BYTES = 300_000_000  # of bodies that are not small, in one worker
LARGE_BODIES = 4  # above the ordinary limit, at once in one worker; more wait before they are read
SECONDS_FOR_A_PLACE = 30.0


class Arrivals:
    """The bodies that one worker has in memory. ``check_known`` raises AuthenticationRequired for a stranger's."""

    def __init__(self, check_known: Callable[[Any], Awaitable[None]]) -> None:
        self._check_known = check_known
        self._places = asyncio.Semaphore(LARGE_BODIES)
        self._bytes = 0

    @asynccontextmanager
    async def body(self, scope: Any, protocol: Any) -> AsyncIterator[bytes]:
        """The whole body, as sent. Leave the context when it is no longer needed.

        Raises AuthenticationRequired, PayloadTooLarge, RequestTimeout, ServiceUnavailable (no place for it), and
        EOFError when the client is gone.
        """
        declared = int(scope.headers.get("content-length") or 0)
        ordinary = 0 < declared <= settings.BODY_LIMIT
        limit = settings.BODY_LIMIT if ordinary else limit_at(scope.path)
        if declared > limit:
            raise too_large(limit)
        if not 0 < declared <= SMALL and (scope.path.startswith("/api/") or limit > settings.BODY_LIMIT):
            limit = await self._limit_for_caller(scope, declared, limit)
        if limit <= settings.BODY_LIMIT:
            async with self._arrived(protocol, declared, limit) as body:
                yield body
            return
        await self._place()
        try:
            async with self._arrived(protocol, declared, limit) as body:
                yield body
        finally:
            self._places.release()

    async def _limit_for_caller(self, scope: Any, declared: int, limit: int) -> int:
        """A stranger's body may be small; that of one in chunks is known only when it has arrived."""
        try:
            await self._check_known(scope)
        except errors.AuthenticationRequired:
            if declared:
                raise
            return min(limit, SMALL)
        return limit

    async def _place(self) -> None:
        try:
            await asyncio.wait_for(self._places.acquire(), SECONDS_FOR_A_PLACE)
        except TimeoutError:
            raise no_place() from None

    @asynccontextmanager
    async def _arrived(self, protocol: Any, declared: int, limit: int) -> AsyncIterator[bytes]:
        small = 0 < declared <= SMALL
        try:
            body = await (_at_once(protocol) if small else self._by_rate(protocol, limit))
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

    async def _by_rate(self, protocol: Any, limit: int) -> bytes:
        """What it answers counts among the bytes in memory until the caller takes it off."""
        chunks, size = list[bytes](), 0
        begin = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(begin + SECONDS) as deadline:
                async for chunk in protocol:
                    chunks.append(chunk)
                    size += len(chunk)
                    self._bytes += len(chunk)
                    if size > limit:
                        raise too_large(limit)
                    if self._bytes > MOST_BYTES:
                        raise no_place()
                    deadline.reschedule(begin + SECONDS + size / BYTES_PER_SECOND)
        except BaseException:
            self._bytes -= size
            raise
        return b"".join(chunks)


def no_place() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable(
        "Too many large bodies are being received. Try again later.", headers={"Retry-After": "30"}
    )


async def _at_once(protocol: Any) -> bytes:
    async with asyncio.timeout(SECONDS):
        body: bytes = await protocol()
    return body
