"""Socket activation: a service manager listens, so that clients wait during a restart instead of being refused.

systemd passes the socket of a `.socket` unit as file descriptor 3 and says so in `LISTEN_PID` and `LISTEN_FDS`
(sd_listen_fds(3)). Connections that arrive while nothing accepts them stay in the socket's queue.
"""

import os
import socket
from typing import Any

from granian.net import SocketHolder

FIRST_DESCRIPTOR = 3


class ActivationError(Exception):
    """The passed sockets cannot be used. The message explains why."""


def take_passed_socket() -> socket.socket | None:
    """The listening TCP socket passed by the service manager; None without one. Raises ActivationError."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    if os.environ.get("LISTEN_FDS") != "1":
        raise ActivationError(
            "Exactly one socket can be served on. Leave one ListenStream= in the socket unit."
        )
    try:
        listener = socket.socket(fileno=FIRST_DESCRIPTOR)
    except OSError as error:
        raise ActivationError(f"LISTEN_FDS promises a socket that is not there: {error.strerror}.") from error
    if listener.family == socket.AF_UNIX or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listener.close()
        raise ActivationError("The socket that was passed is not a listening TCP socket.")
    return listener


def serve_on(granian: Any, listener: socket.socket) -> None:
    """Makes all workers accept from this socket. On Linux, each would otherwise open its own, which closes with it."""

    def share_listener() -> None:
        listener.set_inheritable(True)
        granian._sfd = listener.fileno()
        granian._shd = SocketHolder(granian._sfd, False, granian.backlog)  # type: ignore[call-arg]  # its stub has no constructor
        granian._sso = listener

    granian._init_shared_socket = share_listener
