"""Receives a body with a deadline: in one call if it is small, else in parts. Knows no framework."""

import asyncio
from collections.abc import Callable
from typing import Any

from granian.rsgi import ProtocolClosed, ProtocolError

from flagadmin.core.errors import RequestTimeout

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
    """`add` is told the size of each part that has arrived, and may raise. Raises what `receive_small` does."""
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
