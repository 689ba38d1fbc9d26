"""A database of somebody else's, reached by DATABASE_URL, restarts while imports run."""

import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flagadmin.core.db.bundled import programs
from flagadmin.core.db.bundled.programs import Account, find_server_account
from tests.attack.installation import Installation, installation
from tests.attack.kills import interrupted_imports
from tests.attack.result import Result
from tests.support.live_server import reserved_port


class Server:
    """A PostgreSQL cluster on a port of 127.0.0.1, made of the bundled programs."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.account: Account | None = find_server_account(folder)
        self.root = programs.find_runnable_root(self.account)
        self.process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"postgresql://attacked@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        if self.account:
            os.chown(self.folder, self.account.uid, self.account.gid)
        options = ["--username=attacked", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        subprocess.run(
            [self.root / "bin" / "initdb", "-D", ".", *options],
            cwd=self.folder, check=True, capture_output=True, **self._as_account(),
        )  # fmt: skip

    def start(self) -> None:
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.root / "bin" / "postgres", "-D", ".", *settings],
                cwd=self.folder, stdout=log, stderr=log, **self._as_account(),
            )  # fmt: skip

    def stop(self) -> None:
        """At once: connections are cut, whatever they are doing (PostgreSQL's fast shutdown)."""
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)

    def _as_account(self) -> dict:
        return self.account.process_arguments() if self.account else {}


@contextmanager
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="flagadmin-external-") as folder, reserved_port() as port:
        Path(folder).chmod(0o711)  # the server's account passes
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        made = Server(data, port)
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()


def attacks(seconds: float, seed: int) -> Iterator[Result]:
    with server() as database:
        variables = {"DATABASE_URL": database.url, "SECRET_KEY": "x" * 60}

        def restart(_: Installation, __: random.Random) -> None:
            database.stop()
            database.start()

        with installation(**variables) as target:
            yield interrupted_imports(target, "restarts of an external database", restart, seconds, seed)
