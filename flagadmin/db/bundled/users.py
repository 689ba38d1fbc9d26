"""Who uses the bundled server: each process holds a shared lock for as long as it lives.

The kernel lets go of it however the process ends, so killed processes are never counted. Who gets the lock
exclusively knows that nobody uses the server. Imports little: the guard's memory is nobody's use.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from flagadmin.db.bundled.cluster import Cluster
from flagadmin.db.data_dir import give_to_owner_of


def register(data_dir: Path) -> int:
    """The lock, as a file descriptor, that makes this process a user until it is closed.

    Waits for a process that is just stopping the server.
    """
    lock = _open_lock(data_dir, "lock.users")
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def stop_if_unused(cluster: Cluster) -> None:
    """Stop the server unless somebody uses it; if somebody else is stopping it, wait until that is done."""
    with _opened_lock(cluster.data_dir, "lock.users") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        else:
            cluster.stop()


def stop_when_unused(cluster: Cluster) -> None:
    """Wait until no process uses the server, and stop it."""
    with _opened_lock(cluster.data_dir, "lock.users") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster.stop()


@contextlib.contextmanager
def starting(data_dir: Path) -> Iterator[None]:
    """One process at a time makes and starts the server."""
    with _opened_lock(data_dir, "lock.start") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open_lock(data_dir: Path, name: str) -> int:
    path = data_dir / name
    new = not path.exists()
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if new:
        give_to_owner_of(data_dir, path)
    return lock


@contextlib.contextmanager
def _opened_lock(data_dir: Path, name: str) -> Iterator[int]:
    lock = _open_lock(data_dir, name)
    try:
        yield lock
    finally:
        os.close(lock)
