"""Bodies on their way in: each has a deadline, and large ones a limited number of places in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings
from granian.rsgi import ProtocolClosed, ProtocolError

from flagadmin import errors
from flagadmin.bodies import limit_at, too_large

SECONDS = 10.0  # in which any body may arrive; a longer one must keep to the rate after that
BYTES_PER_SECOND = 100_000
SMALL = 65_536  # bytes; read in one go
LARGE_BODIES = 4  # above the ordinary limit, at once in one worker; more wait before they are read
SECONDS_FOR_A_PLACE = 30.0


class Arrivals:
    """The bodies that one worker is receiving."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(LARGE_BODIES)

    @asynccontextmanager
    async def body(self, scope: Any, protocol: Any) -> AsyncIterator[bytes]:
        """The whole body, as sent. Leave the context when it is no longer needed.

        Raises PayloadTooLarge, RequestTimeout, ServiceUnavailable (no place for a large one), and EOFError when the
        client is gone.
        """
        declared = int(scope.headers.get("content-length") or 0)
        ordinary = 0 < declared <= settings.BODY_LIMIT
        limit = settings.BODY_LIMIT if ordinary else limit_at(scope.path)
        if declared > limit:
            raise too_large(limit)
        if limit <= settings.BODY_LIMIT:
            yield await _arrived(protocol, declared, limit)
            return
        await self._place()
        try:
            yield await _arrived(protocol, declared, limit)
        finally:
            self._places.release()

    async def _place(self) -> None:
        try:
            await asyncio.wait_for(self._places.acquire(), SECONDS_FOR_A_PLACE)
        except TimeoutError:
            raise errors.ServiceUnavailable(
                "Too many large bodies are being received. Try again later.", headers={"Retry-After": "30"}
            ) from None


async def _arrived(protocol: Any, declared: int, limit: int) -> bytes:
    try:
        if 0 < declared <= SMALL:
            async with asyncio.timeout(SECONDS):
                body: bytes = await protocol()
        else:
            body = await _by_rate(protocol, limit)
    except TimeoutError:
        raise errors.RequestTimeout from None
    except (ProtocolClosed, ProtocolError):
        raise EOFError from None
    if len(body) < declared:
        raise EOFError
    return body


async def _by_rate(protocol: Any, limit: int) -> bytes:
    chunks, size = [], 0
    begin = asyncio.get_running_loop().time()
    async with asyncio.timeout_at(begin + SECONDS) as deadline:
        async for chunk in protocol:
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            deadline.reschedule(begin + SECONDS + size / BYTES_PER_SECOND)
    return b"".join(chunks)
