"""Writes responses that stay open at the pace at which clients read them.

Granian keeps a copy of what it is given until the client takes it. It is given no more than UNREAD_BYTES before the
client has read everything else, in pieces, and the connection is reset if reading takes longer than READ_SECONDS.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from flagadmin.core.server.sockets import connections

UNREAD_BYTES = 262_144
PIECE_BYTES = 65_536
READ_SECONDS = 30.0
LOOKS = (0.002, 0.5)  # seconds between looks at what has been read, at first and at most


def cut(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of at most PIECE_BYTES: parts may be tiny, or megabytes that many streams share."""
    piece = bytearray()
    for part in parts:
        at, view = 0, memoryview(part)
        while at < len(part):
            taken = view[at : at + PIECE_BYTES - len(piece)]
            piece += taken
            at += len(taken)
            if len(piece) == PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
    if piece:
        yield bytes(piece)


class PacedWriter:
    """Writes to one client's open response. All methods raise what Granian raises when the client has gone."""

    __slots__ = ("_client", "_transport", "_unread")

    def __init__(self, transport: Any, client: str) -> None:
        self._transport, self._client = transport, client
        self._unread = 0  # bytes given to Granian since the client had read everything

    def has_room(self, nbytes: int) -> bool:
        """Whether so much can be given without waiting for the client."""
        return self._unread + nbytes <= UNREAD_BYTES

    async def give(self, data: bytes) -> None:
        self._unread += len(data)
        await self._transport.send_bytes(data)

    async def write(self, parts: Iterable[bytes]) -> None:
        """Waits for the client where it must. Raises TimeoutError if it does not read, once its connection is reset."""
        for piece in cut(parts):
            if not self.has_room(len(piece)):
                await self._wait_until_read()
            await self.give(piece)

    async def _wait_until_read(self) -> None:
        pause, longest = LOOKS
        try:
            async with asyncio.timeout(READ_SECONDS):
                while True:
                    await asyncio.sleep(pause)  # what was just given may not have reached the kernel yet
                    if not await connections.count_unread(self._client):
                        break
                    pause = min(2 * pause, longest)
        except TimeoutError:
            connections.reset(self._client)
            raise
        self._unread = 0
