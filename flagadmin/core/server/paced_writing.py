"""Writes large responses, and those that stay open, at the pace at which clients read them.

Granian keeps a copy of what it is given until the client takes it. It is given no more than UNREAD_BYTES before the
client has read everything else, in pieces, and the connection is reset if reading takes longer than READ_SECONDS.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from flagadmin.core.server.loop_routes import Ready
from flagadmin.core.server.sockets import connections

UNREAD_BYTES = 262_144
LARGE_ANSWER = 1_048_576  # bytes of an answer, of which no more than this is unread either
PIECE_BYTES = 65_536
READ_SECONDS = 30.0
GONE = (RuntimeError, ConnectionError)  # of Granian: RSGIProtocolClosed
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

    __slots__ = ("_client", "_limit", "_transport", "_unread")

    def __init__(self, transport: Any, client: str, limit: int = UNREAD_BYTES) -> None:
        self._transport, self._client, self._limit = transport, client, limit
        self._unread = 0  # bytes given to Granian since the client had read everything

    def has_room(self, nbytes: int) -> bool:
        """Whether so much can be given without waiting for the client."""
        return self._unread + nbytes <= self._limit

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


def is_large(ready: Ready) -> bool:
    return len(ready.body) > LARGE_ANSWER


async def send_large(ready: Ready, scope: Any, protocol: Any) -> None:
    """Sends a large answer. Its client may read it slowly, or leave.

    At once, Granian would keep a copy for each of the clients that get the same answer.
    """
    if scope.method == "HEAD":
        protocol.response_bytes(ready.status, ready.headers, ready.body)
        return
    # A task, because what Granian runs this coroutine in is none: asyncio.timeout() needs one.
    await asyncio.ensure_future(_write_large(ready, scope, protocol))


async def _write_large(ready: Ready, scope: Any, protocol: Any) -> None:
    headers = [header for header in ready.headers if header[0].lower() != "content-length"]
    headers.append(("content-length", str(len(ready.body))))
    with suppress(TimeoutError, *GONE):
        transport = protocol.response_stream(ready.status, headers)
        await PacedWriter(transport, scope.client, LARGE_ANSWER).write([ready.body])
