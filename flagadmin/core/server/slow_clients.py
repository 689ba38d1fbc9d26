"""Clients that read slowly: how they are served, and how long they may take.

Large responses, and those that stay open, are written at the pace at which clients read them: Granian keeps a copy of
its data until the client takes it. It is given no more than UNREAD_BYTES, in pieces, before the client has read
everything else, and the connection is reset if reading takes longer than READ_SECONDS.

How long connections wait: an idle one for the client's next request, and one for the rest of a request's
headers.

Granian has one timeout for both. It must be longer than the pause between two polls of an SDK, or each poll opens a
connection. So the kernel's figures are used to find headers that arrive slowly. Commands that serve nothing do not
import Granian (5 MB), so this is a module of its own.
"""

import asyncio
import os
import socket
import stat
import struct
import sys
import termios
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fcntl import ioctl
from time import monotonic
from typing import Any

from granian.http import HTTP1Settings

from flagadmin.core.server.loop_routes import Ready

SECONDS_WITHOUT_READING = 30


def drop_stalled_readers() -> bool:
    """Makes the kernel close connections whose client reads nothing for SECONDS_WITHOUT_READING seconds.

    Uses TCP_USER_TIMEOUT, which accepted connections inherit. Returns False if no socket is listening yet.
    """
    is_listening = False
    for listener in _list_listeners():
        with listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SECONDS_WITHOUT_READING * 1000)
            is_listening = True
    return is_listening


async def watch_readers() -> None:
    """A task of the event loop that drops stalled readers from the moment Granian listens."""
    while not drop_stalled_readers():
        await asyncio.sleep(0.1)


class Connections:
    """This process's TCP connections by their client, ``"address:port"``."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._looking: asyncio.Future[None] | None = None

    async def count_unread(self, client: str) -> int:
        """The bytes sent to the client that it has not acknowledged; 0 if it has no TCP connection."""
        for _ in range(2):  # another look may have begun before this connection existed
            if (unread := self._ask(client)) is not None:
                return unread
            if self._looking is None or self._looking.done():
                self._looking = asyncio.ensure_future(asyncio.to_thread(self._look))
            await asyncio.shield(self._looking)
        return self._ask(client) or 0

    def reset(self, client: str) -> None:
        """Ends the connection, so that neither this process nor the kernel keeps unread data."""
        with suppress(OSError), self._duplicate(client) as connection:
            if _is_client(connection, client):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)

    def _ask(self, client: str) -> int | None:
        """The unread bytes; None if the client's connection is unknown."""
        if client not in self._descriptors:
            return None
        try:
            with self._duplicate(client) as connection:
                if not _is_client(connection, client):
                    return None
                unread = ioctl(connection, termios.TIOCOUTQ, bytes(4))
                return int.from_bytes(unread, sys.byteorder)
        except OSError:
            return None

    def _duplicate(self, client: str) -> socket.socket:
        return socket.socket(fileno=os.dup(self._descriptors.get(client, -1)))

    def _look(self) -> None:
        """Looks at all open files. Runs in a thread."""
        descriptors = {}
        for descriptor, connection in _list_sockets():
            with connection, suppress(OSError):
                descriptors.update(dict.fromkeys(_list_clients(connection), descriptor))
        self._descriptors = descriptors


def _is_client(connection: socket.socket, client: str) -> bool:
    return connection.family != socket.AF_UNIX and client in _list_clients(connection)


def _list_clients(connection: socket.socket) -> tuple[str, str]:
    address, port = connection.getpeername()[:2]
    return f"{address}:{port}", f"[{address}]:{port}"


connections = Connections()


def list_accepted() -> Iterator[socket.socket]:
    """Duplicates of the TCP connections that clients have opened to this process. The caller closes them."""
    ports = set()
    for listener in _list_listeners():
        with listener:
            ports.add(listener.getsockname()[1])
    for _, connection in _list_sockets():
        if _is_accepted(connection, ports):
            yield connection
        else:
            connection.close()


def _is_accepted(connection: socket.socket, ports: set[int]) -> bool:
    """Whether it is connected to one of the ports on which this process listens."""
    with suppress(OSError):
        connection.getpeername()
        return connection.getsockname()[1] in ports
    return False


def _list_listeners() -> Iterator[socket.socket]:
    for _, connection in _list_sockets():
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield connection
        else:
            connection.close()


def _list_sockets() -> Iterator[tuple[int, socket.socket]]:
    """This process's TCP sockets: the descriptor, and a duplicate that the caller closes."""
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # closed since then, like the descriptor of the directory listing
            continue
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            continue
        connection = socket.socket(fileno=descriptor)
        if connection.family == socket.AF_UNIX:
            connection.close()
        else:
            yield int(name), connection


UNREAD_BYTES = 262_144
LARGE_ANSWER = 1_048_576  # bytes of an answer, and the limit on its unread bytes
PIECE_BYTES = 65_536
READ_SECONDS = 30.0
GONE = (RuntimeError, ConnectionError)  # Granian raises RSGIProtocolClosed
LOOKS = (0.002, 0.5)  # seconds between checks of the client's progress, at first and at most


def cut(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Cuts the parts into pieces of at most PIECE_BYTES: they may be tiny, or megabytes that many streams share."""
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
    """Writes to one client's open response. All methods raise Granian's error when the client has gone."""

    __slots__ = ("_client", "_limit", "_transport", "_unread")

    def __init__(self, transport: Any, client: str, limit: int = UNREAD_BYTES) -> None:
        self._transport, self._client, self._limit = transport, client, limit
        self._unread = 0  # bytes given to Granian since the client last had read everything

    def has_room(self, nbytes: int) -> bool:
        """Whether this many bytes can be given without waiting for the client."""
        return self._unread + nbytes <= self._limit

    async def give(self, data: bytes) -> None:
        self._unread += len(data)
        await self._transport.send_bytes(data)

    async def write(self, parts: Iterable[bytes]) -> None:
        """Writes and waits for the client if necessary. Resets the connection and raises TimeoutError if it does not
        read.
        """
        for piece in cut(parts):
            if not self.has_room(len(piece)):
                await self._wait_until_read()
            await self.give(piece)

    async def _wait_until_read(self) -> None:
        pause, longest = LOOKS
        try:
            async with asyncio.timeout(READ_SECONDS):
                while True:
                    await asyncio.sleep(pause)  # the last bytes may not have reached the kernel yet
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
    """Sends a large answer in pieces. The client may read it slowly, or leave.

    If it were sent at once, Granian would keep a copy for each client that gets the same answer.
    """
    if scope.method == "HEAD":
        protocol.response_bytes(ready.status, ready.headers, ready.body)
        return
    # A task, because asyncio.timeout() needs one and Granian does not run this coroutine in one.
    await asyncio.ensure_future(_write_large(ready, scope, protocol))


async def _write_large(ready: Ready, scope: Any, protocol: Any) -> None:
    headers = [header for header in ready.headers if header[0].lower() != "content-length"]
    headers.append(("content-length", str(len(ready.body))))
    with suppress(TimeoutError, *GONE):
        transport = protocol.response_stream(ready.status, headers)
        await PacedWriter(transport, scope.client, LARGE_ANSWER).write([ready.body])


IDLE_SECONDS = 90  # longer than SDKs, proxies (60) and load balancers (60) keep a connection
HEADER_SECONDS = 10.0
LOOK_SECONDS = 5.0
HTTP1 = HTTP1Settings(header_read_timeout=IDLE_SECONDS * 1000)
"""Granian's settings for servers and relays."""

# Of Linux's struct tcp_info: milliseconds since data was last sent and received, segments with data received and sent.
_TIMES, _SEGMENTS, _LENGTH = struct.Struct("44xI4xI"), struct.Struct("152xII"), 160

answering: set[str] = set()
"""The clients, ``"address:port"``, whose request has arrived and has no answer yet."""


class SlowRequests:
    """Finds connections on which a request has begun to arrive, and ends them after HEADER_SECONDS."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}  # by client and the number of segments of its answers

    def end(self, now: float) -> None:
        """Checks all connections that this process has accepted. ``now`` is in seconds, by any clock."""
        since: dict[tuple[str, int], float] = {}
        for connection in list_accepted():
            with connection, suppress(OSError):
                if (request := _find_incomplete(connection)) is None:
                    continue
                since[request] = self._since.get(request, now)
                if now - since[request] >= HEADER_SECONDS:
                    connection.shutdown(socket.SHUT_RDWR)
        self._since = since


def _find_incomplete(connection: socket.socket) -> tuple[str, int] | None:
    """The client and the segments sent to it, if it has since sent part of a request that is not complete."""
    figures = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    if len(figures) < _LENGTH:
        return None
    since_sent, since_received = _TIMES.unpack_from(figures)
    received, sent = _SEGMENTS.unpack_from(figures)
    if not received or (sent and since_sent <= since_received):
        return None
    address, port = connection.getpeername()[:2]
    client = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return None if client in answering else (client, sent)


async def end_slow_requests() -> None:
    """A task of the event loop."""
    slow = SlowRequests()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        await asyncio.to_thread(slow.end, monotonic())
