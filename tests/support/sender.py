"""A client that sends a body in parts, as Granian's protocol object shows it."""

import asyncio
from collections.abc import AsyncIterator

from granian.rsgi import ProtocolClosed


class Sender:
    """Sends these chunks and then hangs, ends or goes away."""

    def __init__(self, *chunks: bytes, then: str = "end") -> None:
        self.chunks, self.then = chunks, then

    async def __call__(self) -> bytes:
        return b"".join([chunk async for chunk in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk
        if self.then == "hang":
            await asyncio.Event().wait()
        if self.then == "leave":
            raise ProtocolClosed
