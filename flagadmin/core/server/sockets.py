"""What Granian does not offer for its TCP connections: a timeout for clients that read nothing, and what they read."""

import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress

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


def end_slow_readers(allowed: Mapping[str, int]) -> set[str]:
    """Ends connections of which the client has confirmed fewer bytes than ``allowed`` says, and returns those.

    Clients are given as ``"address:port"``. Looks at all open files: call it in a thread.
    """
    ended = set()
    for connection in _list_sockets():
        with connection, suppress(OSError):
            address, port = connection.getpeername()[:2]
            for client in (f"{address}:{port}", f"[{address}]:{port}"):
                if client in allowed and _count_confirmed_bytes(connection) < allowed[client]:
                    # Reset when it is closed, so that the kernel need not keep what was not read either.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.shutdown(socket.SHUT_RDWR)
                    ended.add(client)
    return ended


def _count_confirmed_bytes(connection: socket.socket) -> int:
    """The bytes that the other side has acknowledged since the connection was made (tcpi_bytes_acked, Linux)."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
    return int(struct.unpack_from("=Q", info, 120)[0])


def _list_listeners() -> Iterator[socket.socket]:
    for connection in _list_sockets():
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield connection
        else:
            connection.close()


def _list_sockets() -> Iterator[socket.socket]:
    """This process's TCP sockets, each as a duplicate that the caller closes."""
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
            yield connection
