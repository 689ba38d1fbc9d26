"""Two servers of Debian's PostgreSQL that Patroni runs with deploy/postgresql/patroni.yml, and etcd, all on 127.0.0.1."""

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.live_server import reserved_port, wait_until
from tests.support.nginx import make_certificate
from tests.support.postgresql_versions import programs_of
from tests.support.programs import program
from tests.support.replication import DEPLOY, PASSWORDS, Server, servers


class Node:
    """A server, and the Patroni that starts, promotes and rewinds it."""

    def __init__(self, server: Server, port: int) -> None:
        self.server, self._port = server, port
        self._folder = server.folder.with_name(f"{server.folder.name}-patroni")
        self._process: subprocess.Popen[Any] | None = None

    def configure(self, programs: Path, etcd: int) -> None:
        self.server.make_folder(self._folder, {})
        key, certificate = self._folder / "server.key", self._folder / "server.crt"
        make_certificate(key, certificate)
        text = (DEPLOY / "patroni.yml").read_text()
        for shipped, here in {
            "[db1:2379, db2:2379, app1:2379]": f"[127.0.0.1:{etcd}]",
            "/var/lib/postgresql/17/flagadmin": str(self.server.folder),
            "/usr/lib/postgresql/17/bin": str(programs),
            "/var/lib/postgresql/.pgpass-patroni": str(self._folder / "pgpass"),
            "/var/run/postgresql": str(self._folder),
            "/etc/ssl/certs/ssl-cert-snakeoil.pem": str(certificate),
            "/etc/ssl/private/ssl-cert-snakeoil.key": str(key),
            "10.0.0.0/24": "127.0.0.1/32",
        }.items():
            assert shipped in text
            text = text.replace(shipped, here)
        (self._folder / "config.yml").write_text(text)
        self.server.own(*self._folder.iterdir())

    def start(self) -> None:
        address, own = f"127.0.0.1:{self.server.port}", f"127.0.0.1:{self._port}"
        variables = {
            "PATRONI_NAME": self.server.folder.name,
            "PATRONI_POSTGRESQL_LISTEN": address,
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": address,
            "PATRONI_RESTAPI_LISTEN": own,
            "PATRONI_RESTAPI_CONNECT_ADDRESS": own,
            "PATRONI_SUPERUSER_PASSWORD": PASSWORDS["superuser_password"],
            "PATRONI_REPLICATION_PASSWORD": PASSWORDS["replicator_password"],
            "PATRONI_REWIND_PASSWORD": PASSWORDS["rewinder_password"],
        }
        with (self._folder.with_suffix(".log")).open("ab") as log:
            self._process = subprocess.Popen(
                [program("patroni", "patroni python3-etcd"), self._folder / "config.yml"],
                stdout=log,
                stderr=log,
                cwd="/",
                env=variables | {"PATH": os.environ["PATH"]},
                **self.server.as_its_account(),
            )

    def kill(self) -> None:
        """SIGKILL to Patroni and its server, as if the machine had lost its power."""
        if self._process:
            self._process.kill()
            self._process.wait()
        self.server.kill()

    def is_now(self, role: str) -> bool:
        """``role`` is one of Patroni's: primary, replica, sync."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{role}") as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError):
            return False


@contextmanager
def running_etcd(folder: Path) -> Iterator[int]:
    """The port for clients of an etcd with one member."""
    with reserved_port() as clients, reserved_port() as peers, (folder / "etcd.log").open("ab") as log:
        urls = {"client": f"http://127.0.0.1:{clients}", "peer": f"http://127.0.0.1:{peers}"}
        options = [
            f"--data-dir={folder / 'etcd'}",
            *(f"--listen-{kind}-urls={url}" for kind, url in urls.items()),
            f"--advertise-client-urls={urls['client']}",
            f"--initial-advertise-peer-urls={urls['peer']}",
            f"--initial-cluster=default={urls['peer']}",
        ]
        process = subprocess.Popen(
            [program("etcd", "etcd-server"), *options], stdout=log, stderr=log, cwd=folder
        )
        try:
            yield clients
        finally:
            process.kill()
            process.wait()


@contextmanager
def patroni_pair(folder: Path) -> Iterator[tuple[Node, Node]]:
    """The primary and its synchronous standby, set up as deploy/README.md says."""
    programs = programs_of(15)
    with servers(2, programs) as pair, running_etcd(folder) as etcd, ExitStack() as running:
        nodes = [Node(server, running.enter_context(reserved_port())) for server in pair]
        for node in nodes:
            node.configure(programs, etcd)
            running.callback(node.kill)
        primary, standby = nodes
        primary.start()
        wait_until(lambda: primary.is_now("primary"))
        standby.start()
        wait_until(lambda: standby.is_now("sync"))
        primary.server.run("roles.sql", **PASSWORDS)
        yield primary, standby
