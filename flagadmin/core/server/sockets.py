"""Socket options that Granian does not offer: a timeout for clients that do not read, and how much they have read."""

import asyncio
import os
import socket
import stat
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl

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
    """A task of the event loop: drops stalled readers from the moment at which Granian listens."""
    while not drop_stalled_readers():
        await asyncio.sleep(0.1)


class Connections:
    """This process's TCP connections by their client, ``"address:port"``."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._looking: asyncio.Future[None] | None = None

    async def count_unread(self, client: str) -> int:
        """The bytes sent to the client that it has not acknowledged; 0 if it has no TCP connection."""
        for _ in range(2):  # another's look may have begun before this connection was there
            if (unread := self._ask(client)) is not None:
                return unread
            if self._looking is None or self._looking.done():
                self._looking = asyncio.ensure_future(asyncio.to_thread(self._look))
            await asyncio.shield(self._looking)
        return self._ask(client) or 0

    def reset(self, client: str) -> None:
        """Ends the connection, so that neither this process nor the kernel keeps what was not read."""
        with suppress(OSError), self._duplicate(client) as connection:
            if _is_client(connection, client):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)

    def _ask(self, client: str) -> int | None:
        """None if it is not known which connection is the client's."""
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
        """Goes through all open files, in a thread."""
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
        except OSError:  # closed meanwhile, as is that of the directory listing
            continue
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            continue
        connection = socket.socket(fileno=descriptor)
        if connection.family == socket.AF_UNIX:
            connection.close()
        else:
            yield int(name), connection
