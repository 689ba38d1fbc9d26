"""PostgreSQL servers on 127.0.0.1, of the bundled programs: one, or a primary and its standby as in deploy/postgresql."""

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
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy" / "postgresql"
SUPERUSER, APPLICATION = "postgres", "flagadmin"
PASSWORDS = {"application_password": "of the application", "replicator_password": "of the replicator"}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # a killed server loses nothing that way, only a machine without power would
    "max_connections": "80",
}
TRUSTING = "host all all 127.0.0.1/32 trust\n"
ONE_SERVER = """
CREATE ROLE flagadmin LOGIN;
CREATE DATABASE flagadmin OWNER flagadmin;
"""


class Server:
    """A server that can be killed. ``folder`` has its data, ``programs`` those of another version than the bundled."""

    def __init__(
        self, folder: Path, port: int, account: Account | None, programs: Path | None = None
    ) -> None:
        self.folder, self.port, self._account = folder, port, account
        self._programs = programs or runnable_root(folder.parent, account) / "bin"
        self._process: subprocess.Popen[Any] | None = None

    def initialise(self, clients: str = TRUSTING, configuration: str = "") -> None:
        """``clients`` are lines of pg_hba.conf, ``configuration`` of postgresql.conf."""
        self._run(self._programs / "initdb", "--auth=trust", f"--username={SUPERUSER}", "-D", self.folder)
        (self.folder / "pg_hba.conf").write_text(f"host all {SUPERUSER} 127.0.0.1/32 trust\n{clients}")
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(configuration)

    def become_standby(self, of: "Server") -> None:
        """Runs deploy/postgresql/standby.sh: this server is a standby of the other one once it is started."""
        password_file = self.folder.parent / "pgpass"
        if not password_file.exists():
            password_file.write_text(f"*:*:*:replicator:{PASSWORDS['replicator_password']}\n")
            password_file.chmod(0o600)
            self.own(password_file)
        environment = {
            "PATH": f"{self._programs}:/usr/bin:/bin",
            "PGDATA": str(self.folder),
            "PGPASSFILE": str(password_file),
        }
        with (DEPLOY / "standby.sh").open() as script:
            subprocess.run(
                ["sh", "-s", "127.0.0.1", str(of.port)],
                stdin=script,
                check=True,
                capture_output=True,
                cwd="/",
                env=environment,
                **self.as_its_account(),
            )

    def copy_to(self, other: "Server") -> None:
        """A base backup, in the folder of a server that has none yet."""
        source = f"host=127.0.0.1 port={self.port} user={SUPERUSER}"
        self._run(
            self._programs / "pg_basebackup", "--checkpoint=fast", f"--dbname={source}", "-D", other.folder
        )

    def make_file(self, name: str) -> None:
        """An empty file in the folder."""
        path = self.folder / name
        path.touch()
        self.own(path)

    def start(self) -> None:
        given = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [self._programs / "postgres", "-D", self.folder, "-p", str(self.port), *given]
        with self.folder.with_name(f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stderr=log, stdout=log, cwd="/", process_group=0, **self.as_its_account()
            )
        wait_until(lambda: self.asks("SELECT 1"))

    def kill(self) -> None:
        """SIGKILL to the server and all its processes."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def ask(self, statement: str, database: str = "postgres") -> str:
        return self._psql(database, SUPERUSER, self.port, statement=statement)

    def run(self, file: str, **variables: str) -> None:
        """Runs one of the SQL files of deploy/postgresql."""
        self._psql("postgres", SUPERUSER, self.port, statement=(DEPLOY / file).read_text(), **variables)

    def asks(self, statement: str, database: str = "postgres", user: str = SUPERUSER, port: int = 0) -> bool:
        """Whether it answers, through a pooler at another port if one is given."""
        try:
            return bool(self._psql(database, user, port or self.port, statement=statement))
        except subprocess.CalledProcessError:
            return False

    def make_folder(self, folder: Path, files: dict[str, str]) -> None:
        """A folder with these files that the server's account can write to."""
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        self.own(folder, *folder.iterdir())

    def as_its_account(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that run a program as the server's account."""
        return self._account.process_arguments() if self._account else {}

    def own(self, *paths: Path) -> None:
        """Gives files to the server's account."""
        if self._account:
            for path in paths:
                shutil.chown(path, self._account.uid, self._account.gid)

    def _psql(self, database: str, user: str, port: int, *, statement: str, **variables: str) -> str:
        where = f"host=127.0.0.1 port={port} user={user} dbname={database}"
        given = [f"--set={name}={value}" for name, value in (variables | {"ON_ERROR_STOP": "1"}).items()]
        command = [str(tool_path("psql")), "-XAtq", *given, where]
        answer = subprocess.run(command, input=statement, check=True, capture_output=True, text=True)
        return answer.stdout.strip()

    def _run(self, *command: str | Path) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self.as_its_account())


@contextmanager
def servers(count: int, programs: Path | None = None) -> Iterator[list[Server]]:
    """Servers that have no data yet; killed at the end."""
    # Not below a folder of pytest's: the account that runs the servers for root may not enter those.
    with TemporaryDirectory(prefix="flagadmin-") as made, ExitStack() as ports:
        folder = Path(made)
        account = server_account(folder)
        if account:
            os.chown(folder, account.uid, account.gid)
        made_servers = [
            Server(folder / f"server-{number}", ports.enter_context(reserved_port()), account, programs)
            for number in range(count)
        ]
        try:
            yield made_servers
        finally:
            for server in made_servers:
                server.kill()


@contextmanager
def one_server(programs: Path | None = None) -> Iterator[Server]:
    """A running server with an empty database ``flagadmin``."""
    with servers(1, programs) as [server]:
        server.initialise()
        server.start()
        for statement in ONE_SERVER.strip().splitlines():
            server.ask(statement)
        yield server


@contextmanager
def replicated() -> Iterator[tuple[Server, Server]]:
    """The primary and its synchronous standby, made as deploy/README.md says."""
    with servers(2) as [primary, standby]:
        # Without TLS, on 127.0.0.1.
        clients = (
            (DEPLOY / "pg_hba.conf")
            .read_text()
            .replace("hostssl", "host")
            .replace("10.0.0.0/24", "127.0.0.1/32")
        )
        primary.initialise(clients, (DEPLOY / "flagadmin.conf").read_text())
        primary.start()
        primary.run("roles.sql", **PASSWORDS)
        follow(primary, standby)
        yield primary, standby


def follow(primary: Server, standby: Server) -> None:
    """A stopped server becomes the synchronous standby of the primary."""
    standby.become_standby(primary)
    standby.start()
    primary.run("synchronous.sql")
    wait_until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync")
