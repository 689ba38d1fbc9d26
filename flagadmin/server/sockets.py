"""Sets a TCP option that Granian does not offer: a timeout for clients that read nothing."""

import os
import socket
import stat
from collections.abc import Iterator

SECONDS_WITHOUT_READING = 30


def drop_stalled_readers() -> bool:
    """Makes the kernel close connections whose client reads nothing for SECONDS_WITHOUT_READING seconds.

    Uses TCP_USER_TIMEOUT, which accepted connections inherit. Returns False if no socket is listening yet.
    """
    found = False
    for listener in _listeners():
        with listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SECONDS_WITHOUT_READING * 1000)
            found = True
    return found


def _listeners() -> Iterator[socket.socket]:
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # the descriptor of the directory listing, already closed
            continue
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            found = socket.socket(fileno=descriptor)
            if found.family != socket.AF_UNIX and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield found
            else:
                found.close()
        else:
            os.close(descriptor)
