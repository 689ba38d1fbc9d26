"""Shares the bundled PostgreSQL server between processes: the first one starts it, the last one stops it.

The last process stops the server when it exits. If that process is killed, `flagadmin.core.db.bundled.guard` stops
the server as soon as no process uses it.

The application's role is not a superuser, and owns the database. In data directories of earlier versions, the
superuser owns everything. The next start transfers ownership, one transaction per database, so that a killed start
changes nothing. The caller must hold the start lock."""

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import psycopg
from psycopg import sql

import flagadmin
from flagadmin.core.db.bundled import cluster as users
from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.core.db.bundled.programs import APPLICATION, SUPERUSER, EmbeddedServerError, find_tool
from flagadmin.core.db.data_dir import make_data_dir

__all__ = ["EmbeddedServerError", "ensure_running", "find_tool", "release"]

READY_SECONDS = 120.0  # recovery after a crash may take a while


class ConnectionParameters(TypedDict):
    """Connection parameters for libpq. `host` is a folder, in a form that child processes can use too."""

    host: str
    user: str
    dbname: str


class _Use:
    """This process's use of one server."""

    def __init__(self, cluster: Cluster, users_lock: int) -> None:
        self.cluster = cluster
        self.users_lock = users_lock
        self.pid = os.getpid()
        self._ready: int | None = None  # the pid of the server that was ready
        self._process: int | None = None  # a descriptor of that process, readable once it has exited

    def is_ready(self) -> bool:
        """Whether the server that was ready still runs. Reads no file if the system gave a descriptor."""
        if self._process is None:
            return self._ready is not None and self._ready == self.cluster.postmaster_pid()
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        return not poll.poll(0)

    def note_ready(self) -> None:
        self.close_process()
        self._ready = self.cluster.postmaster_pid()
        if self._ready is not None:
            with suppress(AttributeError, OSError):  # not Linux, it has exited, or a container forbids it
                self._process = os.pidfd_open(self._ready)

    def close_process(self) -> None:
        if self._process is not None:
            os.close(self._process)
            self._process = None


# Whether a missing cluster is created. The command line turns it off for commands that need an installation.
may_create = True

_uses: dict[Path, _Use] = {}
_registry = threading.Lock()


def ensure_running(data_dir: Path, *, durable: bool = True) -> ConnectionParameters:
    """Registers this process as a user of the server in `data_dir`, and starts the server if necessary.

    If the server is running, the first call takes a few milliseconds and later ones take microseconds. So it can be
    called before every use, to restart a server that was killed. Raises EmbeddedServerError.
    """
    with _registry:
        use = _uses.get(data_dir)
        if use is None or use.pid != os.getpid():  # a forked child must register separately
            use = _register(data_dir, durable=durable)
            _uses[data_dir] = use
        if not use.is_ready():
            if not _is_ready(use.cluster):
                _start(use.cluster)
            use.note_ready()
        return {"host": use.cluster.host, "user": APPLICATION, "dbname": DATABASE}


def release(data_dir: Path) -> None:
    """Unregisters this process, and stops the server if no other uses it.

    Connections must already be closed.
    """
    with _registry:
        use = _uses.pop(data_dir, None)
        if use is None or use.pid != os.getpid():
            return
        # Closed, not unlocked: a forked child may share the lock and still need it.
        os.close(use.users_lock)
        use.close_process()
        users.stop_if_unused(use.cluster)


def _register(data_dir: Path, *, durable: bool) -> _Use:
    try:
        make_data_dir(data_dir)
        lock = users.register(data_dir)
    except OSError as error:
        raise EmbeddedServerError(str(error)) from error
    atexit.register(release, data_dir)
    return _Use(Cluster(data_dir, durable=durable), lock)


def _start(cluster: Cluster) -> None:
    with users.starting(cluster.data_dir):
        if cluster.is_listening():
            try:
                _wait_until_ready(cluster)
                return
            except EmbeddedServerError:
                # A server that was just killed may still have listened for a moment.
                if cluster.is_listening():
                    raise
        if not (may_create or cluster.is_made()):
            raise EmbeddedServerError(
                f"There is no installation in {cluster.data_dir}. Set FLAGADMIN_DATA_DIR or DATABASE_URL to yours, "
                "or start `serve` to make one here."
            )
        cluster.make()
        cluster.start()
        _spawn_guard(cluster)
        _wait_until_ready(cluster)


def _is_ready(cluster: Cluster) -> bool:
    """Whether the database accepts connections. False during startup and until the role exists."""
    if not cluster.is_listening():
        return False
    try:
        with psycopg.connect(host=cluster.host, user=APPLICATION, dbname=DATABASE, connect_timeout=5):
            return True
    except psycopg.OperationalError:
        return False


def _wait_until_ready(cluster: Cluster) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return prepare_databases(cluster.host)
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or not cluster.is_listening():
                raise EmbeddedServerError(
                    f"PostgreSQL is running but does not accept connections: {error}"
                ) from error
        time.sleep(0.01)


def _spawn_guard(cluster: Cluster) -> None:
    project = Path(flagadmin.__file__).resolve().parents[1]
    guard = subprocess.Popen(
        [sys.executable, "-m", "flagadmin.core.db.bundled.guard", str(cluster.data_dir)],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # It outlives this process by design; otherwise Python would warn that it is still running.
    guard.returncode = 0


DATABASE = "flagadmin"
LOCK_SECONDS = 5  # to wait for a table that a process of an earlier version is using, before retrying

# CREATEDB: test runs create their own databases.
_CREATE_ROLE = f"CREATE ROLE {APPLICATION} LOGIN CREATEDB"
_DATABASES_TO_HAND_OVER = """
SELECT datname FROM pg_database
 WHERE datdba = %(superuser)s::regrole AND datallowconn AND NOT datistemplate
   AND datconnlimit >= -1 AND datname <> 'postgres'
"""
# Sequences of columns change owner with their table.
_STATEMENTS = """
SELECT format('ALTER TABLE %%s OWNER TO %%I', oid::regclass, %(application)s::text)
  FROM pg_class c
 WHERE relnamespace = 'public'::regnamespace AND relowner = %(superuser)s::regrole
   AND relkind IN ('r', 'p', 'v', 'm', 'S')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND (d.deptype = 'e' OR c.relkind = 'S' AND d.deptype IN ('a', 'i')))
 UNION ALL
SELECT format('ALTER ROUTINE %%s OWNER TO %%I', oid::regprocedure, %(application)s::text)
  FROM pg_proc p
 WHERE pronamespace = 'public'::regnamespace AND proowner = %(superuser)s::regrole
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                      AND d.deptype = 'e')
"""
_ROLES = {"superuser": SUPERUSER, "application": APPLICATION}


def prepare_databases(host: str) -> None:
    """Creates the application's role and database, and makes the role the owner of everything. Idempotent."""
    with _connect(host, "postgres", autocommit=True) as connection:
        databases = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
        if not databases.rowcount:
            connection.execute(f"CREATE DATABASE {DATABASE}")
    # Creates the role in the same transaction, so that a role that can log in already owns everything.
    _hand_over(host, DATABASE)
    with _connect(host, "postgres") as connection:
        others = connection.execute(_DATABASES_TO_HAND_OVER, _ROLES).fetchall()
    for (name,) in others:
        _hand_over(host, name)


def _hand_over(host: str, database: str) -> None:
    with _connect(host, database) as connection:
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [APPLICATION]).rowcount:
            connection.execute(_CREATE_ROLE)
        for (statement,) in connection.execute(_STATEMENTS, _ROLES).fetchall():
            connection.execute(statement)
        owned = sql.SQL("ALTER DATABASE {} OWNER TO {}")
        connection.execute(owned.format(sql.Identifier(database), sql.Identifier(APPLICATION)))


def _connect(host: str, database: str, *, autocommit: bool = False) -> psycopg.Connection:
    return psycopg.connect(
        host=host, user=SUPERUSER, dbname=database, autocommit=autocommit, connect_timeout=5
    )
