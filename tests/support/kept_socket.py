"""Starts `serve` on a socket that stays open between starts, as systemd does."""

import socket
import sys

# The socket becomes descriptor 3, and LISTEN_PID is the process that serves.
_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, "manage.py", "serve", *sys.argv[2:]])
"""


def serve_command(listener: socket.socket, *options: str) -> list[str]:
    """For a Popen with ``pass_fds=[listener.fileno()]``."""
    return [sys.executable, "-c", _START, str(listener.fileno()), *options]
