"""PostgreSQL servers on 127.0.0.1, of the bundled programs: one, or a primary and its standby as in deploy/postgresql."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from flagadmin.core.db.bundled.programs import APPLICATION as BUNDLED_APPLICATION
from flagadmin.core.db.bundled.programs import SUPERUSER as BUNDLED_SUPERUSER
from flagadmin.core.db.bundled.programs import Account, find_runnable_root, find_server_account
from tests.support.live_server import reserved_port, wait_until
from tests.support.nginx import make_certificate
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy" / "postgresql"
SUPERUSER, APPLICATION = "postgres", "flagadmin"
PASSWORDS = {
    f"{role}_password": f"of the {role}" for role in ("application", "replicator", "rewinder", "superuser")
}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # a killed server loses nothing that way, only a machine without power would
    "max_connections": "80",
}
TRUSTING = "host all all 127.0.0.1/32 trust\n"
ONE_SERVER = """
CREATE ROLE flagadmin LOGIN;
CREATE DATABASE flagadmin OWNER flagadmin;
"""


# What makes the bundled server's roles those of ONE_SERVER. Nobody renames the role of their own session.
ADOPT = (
    (BUNDLED_SUPERUSER, "CREATE ROLE adopting SUPERUSER LOGIN"),
    ("adopting", f"ALTER ROLE {BUNDLED_SUPERUSER} RENAME TO {SUPERUSER}"),
    (SUPERUSER, f"ALTER ROLE {BUNDLED_APPLICATION} RENAME TO {APPLICATION}"),
    (SUPERUSER, "DROP ROLE adopting"),
)


class Server:
    """A server that can be killed. ``folder`` has its data, ``programs`` those of another version than the bundled."""

    def __init__(
        self, folder: Path, port: int, account: Account | None, programs: Path | None = None
    ) -> None:
        self.folder, self.port, self._account = folder, port, account
        self._programs = programs or find_runnable_root(account) / "bin"
        self._process: subprocess.Popen[Any] | None = None
        # A folder for a socket beside the port; none by default.
        self.sockets = ""

    def initialize(self, clients: str = TRUSTING, configuration: str = "") -> None:
        """``clients`` are lines of pg_hba.conf, ``configuration`` of postgresql.conf."""
        self._run(self._programs / "initdb", "--auth=trust", f"--username={SUPERUSER}", "-D", self.folder)
        self.allow(clients)
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(configuration)

    def allow(self, clients: str) -> None:
        (self.folder / "pg_hba.conf").write_text(f"host all {SUPERUSER} 127.0.0.1/32 trust\n{clients}")

    def become_standby(self, of: "Server") -> None:
        """Runs deploy/postgresql/standby.sh as the server's account, which may not read the checkout.

        This server is a standby of the other one once it is started.
        """
        scripts = self.folder.parent / "scripts"
        if not scripts.exists():
            passwords = f"*:*:*:replicator:{PASSWORDS['replicator_password']}\n"
            script = (DEPLOY / "standby.sh").read_text()
            self.make_folder(scripts, {"standby.sh": script, "pgpass": passwords})
            (scripts / "standby.sh").chmod(0o755)
            (scripts / "pgpass").chmod(0o600)
        environment = {
            "PATH": f"{self._programs}:/usr/bin:/bin",
            "PGDATA": str(self.folder),
            "PGPASSFILE": str(scripts / "pgpass"),
        }
        done = subprocess.run(
            [scripts / "standby.sh", "127.0.0.1", str(of.port)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=environment,
            **self.as_its_account(),
        )
        assert done.returncode == 0, done.stdout

    def _options(self) -> list[str]:
        settings = SETTINGS | {"unix_socket_directories": self.sockets}
        return [
            "-p",
            str(self.port),
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
        ]

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

    def start(self, user: str = SUPERUSER) -> None:
        command = [self._programs / "postgres", "-D", self.folder, *self._options()]
        with self.folder.with_name(f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stderr=log, stdout=log, cwd="/", process_group=0, **self.as_its_account()
            )
        wait_until(lambda: self.asks("SELECT 1", user=user))

    def stop(self) -> None:
        """At once: connections are cut, whatever they are doing (PostgreSQL's fast shutdown)."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """SIGKILL to the server."""
        with suppress(FileNotFoundError, ProcessLookupError):
            pid = int((self.folder / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGKILL)  # its children notice, and end
            wait_until(lambda: self._has_ended(pid))

    def _has_ended(self, pid: int) -> bool:
        if self._process is not None and self._process.pid == pid:
            return self._process.poll() is not None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    def ask(self, statement: str, database: str = "postgres", user: str = SUPERUSER) -> str:
        return self._psql(database, user, self.port, statement=statement)

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
        settings = [f"--set={name}={value}" for name, value in (variables | {"ON_ERROR_STOP": "1"}).items()]
        command = [self._programs / "psql", "-XAtq", *settings, where]
        password = PASSWORDS["superuser_password" if user == SUPERUSER else "application_password"]
        answer = subprocess.run(
            command,
            input=statement,
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PGPASSWORD": password},
        )
        return answer.stdout.strip()

    def _run(self, *command: str | Path) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self.as_its_account())


def application_url(*databases: Server) -> str:
    """The DATABASE_URL of an installation that uses whichever is the primary."""
    hosts = ",".join(f"127.0.0.1:{database.port}" for database in databases)
    account = f"{APPLICATION}:{quote(PASSWORDS['application_password'])}"
    return f"postgresql://{account}@{hosts}/flagadmin?target_session_attrs=read-write"


@contextmanager
def servers(count: int, programs: Path | None = None) -> Iterator[list[Server]]:
    """Servers that have no data yet; killed at the end."""
    # Not below a folder of pytest's: the account that runs the servers for root may not enter those.
    with TemporaryDirectory(prefix="flagadmin-") as made, ExitStack() as ports:
        folder = Path(made)
        account = find_server_account(folder)
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
        server.initialize()
        server.start()
        for statement in ONE_SERVER.strip().splitlines():
            server.ask(statement)
        yield server


@contextmanager
def deployed_server(programs: Path) -> Iterator[Server]:
    """A running server with TLS, set up with pg_hba.conf and roles.sql of deploy/postgresql."""
    with servers(1, programs) as [server]:
        server.initialize(shipped_clients(), "ssl = on\n")
        make_certificate(server.folder / "server.key", server.folder / "server.crt")
        server.own(server.folder / "server.key", server.folder / "server.crt")
        server.start()
        server.run("roles.sql", **PASSWORDS)
        yield server


def shipped_clients() -> str:
    """deploy/postgresql/pg_hba.conf for servers on 127.0.0.1."""
    return (DEPLOY / "pg_hba.conf").read_text().replace("10.0.0.0/24", "127.0.0.1/32")


@contextmanager
def migrated_server(install: Callable[[Path], None]) -> Iterator[Server]:
    """A running server with the migrated database ``flagadmin`` of a copied installation."""
    with servers(1) as [server], TemporaryDirectory(prefix="flagadmin-") as made:
        install(Path(made) / "data")
        shutil.move(Path(made) / "data" / "postgres", server.folder)
        server.allow(TRUSTING)
        server.start(BUNDLED_SUPERUSER)
        for user, statement in ADOPT:
            server.ask(statement, user=user)
        yield server


@contextmanager
def replicated(programs: Path | None = None) -> Iterator[tuple[Server, Server]]:
    """The primary and its synchronous standby, made as deploy/README.md says."""
    with servers(2, programs) as [primary, standby]:
        # Without TLS, which the bundled programs lack.
        clients = shipped_clients().replace("hostssl", "host")
        primary.initialize(clients, (DEPLOY / "flagadmin.conf").read_text())
        primary.start()
        primary.run("roles.sql", **PASSWORDS)
        primary.run("replicator.sql", **PASSWORDS)
        follow(primary, standby)
        yield primary, standby


def follow(primary: Server, standby: Server) -> None:
    """A stopped server becomes the synchronous standby of the primary."""
    standby.become_standby(primary)
    standby.start()
    primary.run("synchronous.sql")
    wait_until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync")
