"""Two PostgreSQL servers on 127.0.0.1: a primary, and a synchronous standby of it, made with the bundled programs."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flagadmin.db.bundled.account import Account, server_account
from flagadmin.db.bundled.binaries import runnable_root, tool_path
from tests.support.live_server import reserved_port, wait_until

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # a killed server loses nothing that way, only a machine without power would
    "synchronous_commit": "on",
    "max_connections": "80",
}


class Server:
    """A server that can be killed. ``folder`` has its data."""

    def __init__(self, folder: Path, port: int, account: Account | None) -> None:
        self.folder, self.port, self._account = folder, port, account
        self._programs = runnable_root(folder.parent, account) / "bin"
        self._process: subprocess.Popen[bytes] | None = None

    def initialise(self) -> None:
        self._run(self._programs / "initdb", "--auth=trust", "--username=flagadmin", "-D", self.folder)

    def copy(self, of: "Server") -> None:
        """Makes this a standby of a running server."""
        copied = self.folder.with_name("copied")
        target = f"host=127.0.0.1 port={of.port} user=flagadmin application_name=standby"
        subprocess.run(
            [
                tool_path("pg_basebackup"),
                "--pgdata",
                copied,
                "--write-recovery-conf",
                "--checkpoint=fast",
                "-d",
                target,
            ],
            check=True,
        )
        copied.rename(self.folder)
        if self._account:
            for path in (self.folder, *self.folder.rglob("*")):
                shutil.chown(path, self._account.uid, self._account.gid)

    def start(self, **more: str) -> None:
        given = [word for name, value in (SETTINGS | more).items() for word in ("-c", f"{name}={value}")]
        command: list[str | Path] = [
            self._programs / "postgres",
            "-D",
            self.folder,
            "-p",
            str(self.port),
            *given,
        ]
        with self.folder.with_name(f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stderr=log,
                cwd="/",
                process_group=0,
                **self.as_its_account(),
            )
        wait_until(lambda: self.asks("SELECT 1"))

    def ask(self, statement: str, database: str = "postgres", port: int | None = None) -> str:
        where = f"host=127.0.0.1 port={port or self.port} user=flagadmin dbname={database}"
        command = [str(tool_path("psql")), "-XAtqc", statement, where]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def asks(self, statement: str, database: str = "postgres", port: int | None = None) -> bool:
        try:
            return bool(self.ask(statement, database, port))
        except subprocess.CalledProcessError:
            return False

    def kill(self) -> None:
        """SIGKILL to the server and all its processes."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def make_folder(self, folder: Path, files: dict[str, str]) -> None:
        """A folder with these files that the server's account can write to."""
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        if self._account:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, self._account.uid, self._account.gid)

    def as_its_account(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that run a program as the server's account."""
        return self._account.process_arguments() if self._account else {}

    def _run(self, *command: str | Path) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self.as_its_account())


@contextmanager
def servers(count: int) -> Iterator[list[Server]]:
    """Servers that have no data yet; killed at the end."""
    # Not below a folder of pytest's: the account that runs the servers for root may not enter those.
    with TemporaryDirectory(prefix="flagadmin-") as made, ExitStack() as ports:
        folder = Path(made)
        account = server_account(folder)
        if account:
            os.chown(folder, account.uid, account.gid)
        made_servers = [
            Server(folder / f"server-{number}", ports.enter_context(reserved_port()), account)
            for number in range(count)
        ]
        try:
            yield made_servers
        finally:
            for server in made_servers:
                server.kill()


@contextmanager
def one_server() -> Iterator[Server]:
    """A running server with an empty database ``flagadmin``."""
    with servers(1) as [server]:
        server.initialise()
        server.start()
        server.ask("CREATE DATABASE flagadmin")
        yield server


@contextmanager
def replicated() -> Iterator[tuple[Server, Server]]:
    """The primary and its standby. A commit waits for both."""
    with servers(2) as [primary, standby]:
        primary.initialise()
        primary.start()
        primary.ask("CREATE DATABASE flagadmin")
        standby.copy(primary)
        standby.start()
        primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.ask("SELECT pg_reload_conf()")
        wait_until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync")
        yield primary, standby
