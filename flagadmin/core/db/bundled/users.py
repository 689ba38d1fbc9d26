"""Tracks which processes use the bundled PostgreSQL server: each holds a shared file lock while it runs.

The kernel releases the lock however the process ends, so killed processes are not counted. A process that
gets the exclusive lock knows that no process uses the server. This module imports little, to keep the guard
process small.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.core.db.data_dir import give_to_owner_of


def register(data_dir: Path) -> int:
    """Registers this process as a user until the returned file descriptor is closed.

    Waits if another process is stopping the server.
    """
    lock = _open_lock(data_dir, "lock.users")
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def stop_if_unused(cluster: Cluster) -> None:
    """Stops the server if no process uses it.

    If another process is stopping it, waits until it has stopped.
    """
    with _hold_file(cluster.data_dir, "lock.users") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            cluster.leave()
        else:
            cluster.stop()


def stop_when_unused(cluster: Cluster) -> None:
    """Waits until no process uses the server, then stops it."""
    with _hold_file(cluster.data_dir, "lock.users") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster.stop()


@contextlib.contextmanager
def starting(data_dir: Path) -> Iterator[None]:
    """Holds the start lock, so that one process at a time creates and starts the server."""
    with _hold_file(data_dir, "lock.start") as lock:
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
def _hold_file(data_dir: Path, name: str) -> Iterator[int]:
    lock = _open_lock(data_dir, name)
    try:
        yield lock
    finally:
        os.close(lock)
