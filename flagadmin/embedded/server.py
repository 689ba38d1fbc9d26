"""Sharing the bundled server: the first user starts it, the last one out stops it.

Every process that uses the server holds a shared lock on `lock.users` for as long as it lives. The kernel
lets go of it however the process ends, so killed processes are never counted. Who gets the lock
exclusively knows that nobody uses the server, and stops it: the last process at its exit, or the guard
(`flagadmin.embedded.guard`), which waits for that moment in case the last process was killed.
"""

import atexit
import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import psycopg

from flagadmin.datadir import give_to_owner_of, make_data_dir
from flagadmin.embedded.binaries import tool_path
from flagadmin.embedded.cluster import SUPERUSER, Cluster
from flagadmin.embedded.errors import EmbeddedServerError

__all__ = ["EmbeddedServerError", "ensure_running", "release", "tool_path"]

DATABASE = "flagadmin"
READY_SECONDS = 120.0  # recovery after a crash may take a while


class ConnectionParameters(TypedDict):
    """What libpq needs; `host` is a folder, written so that child processes can use it too."""

    host: str
    user: str
    dbname: str


class _Use:
    """This process's use of one server."""

    def __init__(self, cluster: Cluster, users_lock: int) -> None:
        self.cluster = cluster
        self.users_lock = users_lock
        self.pid = os.getpid()


_uses: dict[Path, _Use] = {}
_registry = threading.Lock()


def ensure_running(data_dir: Path, *, durable: bool = True) -> ConnectionParameters:
    """Register this process as a user of the server in `data_dir`, starting it if it does not run.

    Takes a few milliseconds when it runs. Raises EmbeddedServerError if it cannot be started.
    """
    with _registry:
        use = _uses.get(data_dir)
        if use is None or use.pid != os.getpid():  # a forked child counts for itself
            use = _registered(data_dir, durable=durable)
            _uses[data_dir] = use
        if not _is_ready(use.cluster):
            _start(use.cluster)
        return {"host": use.cluster.host, "user": SUPERUSER, "dbname": DATABASE}


def release(data_dir: Path) -> None:
    """End this process's use; stop the server if it was the last. Connections must be closed before."""
    with _registry:
        use = _uses.pop(data_dir, None)
        if use is None or use.pid != os.getpid():
            return
        # Closed, not unlocked: a forked child may hold the same lock, and still needs it.
        os.close(use.users_lock)
        stop_if_unused(use.cluster)


def stop_if_unused(cluster: Cluster) -> None:
    """Stop the server unless somebody uses it; if somebody else is stopping it, wait until that is done."""
    with _opened_lock(cluster.data_dir, "lock.users") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        else:
            cluster.stop()


def wait_until_unused(data_dir: Path) -> None:
    """Return when no process uses the server (somebody may begin to right after)."""
    with _opened_lock(data_dir, "lock.users") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def _registered(data_dir: Path, *, durable: bool) -> _Use:
    try:
        make_data_dir(data_dir)
        lock = _open_lock(data_dir, "lock.users")
    except OSError as error:
        raise EmbeddedServerError(str(error)) from error
    # Waits for a process that is just stopping the server.
    fcntl.flock(lock, fcntl.LOCK_SH)
    atexit.register(release, data_dir)
    return _Use(Cluster(data_dir, durable=durable), lock)


def _start(cluster: Cluster) -> None:
    with _opened_lock(cluster.data_dir, "lock.start") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.is_listening():
            cluster.make()
            cluster.start()
            _spawn_guard(cluster)
        _wait_until_ready(cluster)


def _is_ready(cluster: Cluster) -> bool:
    """Whether our database answers; False as well while the server starts up."""
    if not cluster.is_listening():
        return False
    try:
        with psycopg.connect(host=cluster.host, user=SUPERUSER, dbname=DATABASE, connect_timeout=5):
            return True
    except psycopg.OperationalError:
        return False


def _wait_until_ready(cluster: Cluster) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return _make_database(cluster)
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or not cluster.is_listening():
                raise EmbeddedServerError(f"PostgreSQL runs but takes no connection: {error}") from error
        time.sleep(0.01)


def _make_database(cluster: Cluster) -> None:
    with psycopg.connect(
        host=cluster.host, user=SUPERUSER, dbname="postgres", autocommit=True, connect_timeout=5
    ) as connection:
        there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if not there:
            connection.execute(f"CREATE DATABASE {DATABASE}")


def _spawn_guard(cluster: Cluster) -> None:
    project = Path(__file__).resolve().parents[2]
    guard = subprocess.Popen(
        [sys.executable, "-m", "flagadmin.embedded.guard", str(cluster.data_dir)],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # It outlives us by design: without this Python warns of a process left running.
    guard.returncode = 0


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
