"""How long connections wait: an idle one for the client's next request, and one for the rest of a request's headers.

Granian has one timeout for both. It must be longer than the pause between two polls of an SDK, or each poll opens a
connection. So the kernel's figures are used to find headers that arrive slowly. Commands that serve nothing do not
import Granian (5 MB), so this is a module of its own.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from time import monotonic

from granian.http import HTTP1Settings

from flagadmin.core.server.slow_clients import list_accepted

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
