"""Creates, starts, probes and stops the bundled PostgreSQL cluster in a data directory.

The server listens only on a Unix socket in its own folder (mode 0700) and accepts connections from root and
from the account that owns the data. When root starts it under another account, it runs with its folder as the
working directory and `-D /proc/self/cwd`, so that the account needs no access to parent folders, even if the
data is in root's home.

Each process that uses the server holds a shared file lock while it runs. The kernel releases the lock however the
process ends, so killed processes are not counted. A process that gets the exclusive lock knows that no process uses
the server. This module imports little, to keep the guard process small.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from flagadmin.core.db.bundled import programs as binaries
from flagadmin.core.db.bundled.programs import (
    SUPERUSER,
    Account,
    EmbeddedServerError,
    access_files,
    find_server_account,
)
from flagadmin.core.db.data_dir import give_to_owner_of

SOCKET_NAME = ".s.PGSQL.5432"
MAX_SOCKET_PATH_LENGTH = 103  # bytes: 107 on Linux, 103 on macOS
START_SECONDS = 60.0
STOP_SECONDS = 60.0
LOG_BYTES = 5_000_000

_ALWAYS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",  # statements contain user data, which must not be logged
    "log_timezone": "UTC",
    "timezone": "UTC",
}
# For tests: data may be lost if the machine crashes.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Cluster:
    """The cluster in `data_dir/postgres`.

    `durable=False` is faster, but a crash of the machine may lose data.
    """

    def __init__(self, data_dir: Path, *, durable: bool) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / "postgres"
        self.durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._folder_descriptor: int | None = None

    # -- location ---------------------------------------------------------------------------------------

    @cached_property
    def host(self) -> str:
        """libpq's host: the socket's folder, or a short alias if its path is too long or has a comma."""
        plain = str(self.folder)
        if len(os.fsencode(f"{plain}/{SOCKET_NAME}")) <= MAX_SOCKET_PATH_LENGTH and "," not in plain:
            return plain
        if not Path("/proc/self/fd").is_dir():
            raise EmbeddedServerError(
                f"The path {plain} is too long for a socket, or contains a comma."
                " Set FLAGADMIN_DATA_DIR to another."
            )
        return f"/proc/{os.getpid()}/fd/{self._open_folder()}"

    def _open_folder(self) -> int:
        if self._folder_descriptor is None:
            self._folder_descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        return self._folder_descriptor

    # -- status -----------------------------------------------------------------------------------------

    def is_made(self) -> bool:
        return (self.folder / "PG_VERSION").exists()

    def is_listening(self) -> bool:
        """Whether a server accepts connections on the socket (it may still be starting up)."""
        if not (self.folder / SOCKET_NAME).exists():
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(f"{self.host}/{SOCKET_NAME}")
            except OSError:
                return False
        return True

    def postmaster_pid(self) -> int | None:
        """The pid in `postmaster.pid`, if that process is running and works in the cluster's folder."""
        try:
            pid = int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (OSError, ValueError):
            return None
        return pid if sys.platform != "linux" or _works_in(self.folder, Path(f"/proc/{pid}")) else None

    # -- create -----------------------------------------------------------------------------------------

    def make(self) -> None:
        """Runs initdb in a temporary folder and renames it, so that an incomplete cluster is never used."""
        self._check_version()
        if self.is_made():
            return
        for left_over in self.data_dir.glob("postgres.new.*"):
            shutil.rmtree(left_over)
        draft = self.data_dir / f"postgres.new.{os.getpid()}"
        draft.mkdir(mode=0o700)
        account = find_server_account(self.data_dir)
        if account:
            os.chown(draft, account.uid, account.gid)
        self._initdb(draft, account)
        draft.rename(self.folder)

    def _initdb(self, draft: Path, account: Account | None) -> None:
        command = [
            str(binaries.find_runnable_root(account) / "bin" / "initdb"),
            f"--pgdata={self._data_argument(draft, account)}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            *([] if self.durable else ["--no-sync"]),
        ]
        created = subprocess.run(
            command,
            check=False,
            cwd=draft,
            env=_make_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **_as(account),
        )
        if created.returncode:
            raise EmbeddedServerError(f"initdb failed:\n{created.stdout.decode(errors='replace')}")

    def _check_version(self) -> None:
        if self.is_made():
            version = (self.folder / "PG_VERSION").read_text().strip()
            if version != binaries.MAJOR_VERSION:
                raise EmbeddedServerError(
                    f"{self.folder} was made by PostgreSQL {version}; the bundled one is"
                    f" {binaries.MAJOR_VERSION}. Restore a backup into an empty data directory."
                )

    @staticmethod
    def _data_argument(folder: Path, account: Account | None) -> str:
        if account and sys.platform == "linux":
            return "/proc/self/cwd"
        return str(folder)

    # -- start ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the server and returns when it accepts connections. The caller must hold the start lock."""
        deadline = time.monotonic() + START_SECONDS
        self._forget_process()
        while not self.is_listening():
            if self._process is not None and self._process.poll() is not None:
                self._check_may_heal()
                self._forget_process()
            if self._process is None and self.postmaster_pid() is None:
                self._drop_misleading_pid_files()
                self._launch()
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"PostgreSQL did not start. Its log says:\n{self._log_tail()}")
            time.sleep(0.01)

    def _check_may_heal(self) -> None:
        """Raises EmbeddedServerError unless the cause is temporary: a killed server's exiting children."""
        log = self._log_tail()
        if "is still in use" not in log and "still running" not in log:
            raise EmbeddedServerError(f"PostgreSQL did not start. Its log says:\n{log}")
        time.sleep(0.2)

    def _launch(self) -> None:
        account = find_server_account(self.data_dir)
        self._write_access(account)
        program = binaries.find_runnable_root(account) / "bin" / "postgres"
        settings = _ALWAYS if self.durable else _ALWAYS | _NOT_DURABLE
        folder = self._data_argument(self.folder, account)
        access = {f"{name}_file": f"{folder}/flagadmin_{name}.conf" for name in ("hba", "ident")}
        command = [str(program), "-D", folder]
        for name, value in (settings | access).items():
            command += ["-c", f"{name}={value}"]
        command += ["-c", f"cluster_name={_describe_path(self.data_dir)}"]
        with self._open_log() as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_make_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl+C in the terminal must not reach the server
                **_as(account),
            )

    def _write_access(self, account: Account | None) -> None:
        """Writes the `hba` and `ident` files. Runs at each start, because clusters of old versions lack them."""
        for name, content in access_files(account).items():
            path = self.folder / f"flagadmin_{name}.conf"
            path.unlink(missing_ok=True)
            path.write_text(content)
            give_to_owner_of(self.folder, path)

    def _drop_misleading_pid_files(self) -> None:
        """Removes stale pid files. PostgreSQL would not notice that another process now has their pid.

        Keeps them while any process works in the folder, because the next server must detect the remaining
        children of a killed one.
        """
        if not any(_works_in(self.folder, process) for process in Path("/proc").glob("[0-9]*")):
            for name in ("postmaster.pid", f"{SOCKET_NAME}.lock"):
                (self.folder / name).unlink(missing_ok=True)

    # -- stop -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stops the server if it is running, and returns when it has exited."""
        pid = self.postmaster_pid()
        if pid is None:
            return
        _send_signal(pid, signal.SIGINT)  # "fast" shutdown: ends sessions and writes the data
        deadline = time.monotonic() + STOP_SECONDS
        while self.postmaster_pid() == pid and not self._has_exited(pid):
            if time.monotonic() > deadline:
                _send_signal(pid, signal.SIGQUIT)  # immediate shutdown; the next start recovers
                deadline = float("inf")
            time.sleep(0.01)
        self._forget_process()

    def leave(self) -> None:
        """Forgets a server that another process has stopped or still uses."""
        if self.postmaster_pid() is None:
            self._forget_process()
        elif self._process is not None:
            # It outlives this process by design; otherwise Python would warn that it is still running.
            self._process.returncode = 0
            self._process = None

    def _forget_process(self) -> None:
        """Reaps the server if this process started it. It has exited or is about to."""
        if self._process is not None:
            self._process.wait(timeout=STOP_SECONDS)
            self._process = None

    def _has_exited(self, pid: int) -> bool:
        return self._process is not None and self._process.pid == pid and self._process.poll() is not None

    # -- log --------------------------------------------------------------------------------------------

    @property
    def log_path(self) -> Path:
        return self.data_dir / "postgres.log"

    def _open_log(self) -> BinaryIO:
        new = not self.log_path.exists()
        if not new and self.log_path.stat().st_size > LOG_BYTES:
            self.log_path.rename(self.data_dir / "postgres.log.1")
            new = True
        descriptor = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if new:
            give_to_owner_of(self.data_dir, self.log_path)
        return os.fdopen(descriptor, "ab")

    def _log_tail(self) -> str:
        try:
            return self.log_path.read_text(errors="replace")[-2000:]
        except OSError:
            return "(no log)"


def _as(account: Account | None) -> dict[str, Any]:
    return account.process_arguments() if account else {}


def _make_environment() -> dict[str, str]:
    """Omits this process's variables: they contain secrets that the account's processes could read."""
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return environment | {"LC_ALL": "C"}


def _describe_path(data_dir: Path) -> str:
    """The directory in the form shown in the process list: the last 60 characters, as printable ASCII."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in str(data_dir))[-60:]


def _works_in(folder: Path, process: Path) -> bool:
    """Whether the folder is the working directory of ``process``, a path such as /proc/123."""
    try:
        return os.path.samefile(process / "cwd", folder)
    except OSError:  # it has exited, is a zombie, or belongs to another user
        return False


def _send_signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


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
