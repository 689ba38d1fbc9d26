"""A server with two workers that a test run starts once, for all tests that only need one that runs (`forked.py`).

Before each test, its rows are those of a new installation. Tests of starting, stopping and upgrading start their own.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.core.db.bundled.programs import APPLICATION, SUPERUSER
from flagadmin.core.db.commits import CHANNEL
from tests.support.emptying import keep_rows
from tests.support.live_server import Client, descendants, is_ready, reserved_port, wait_until
from tests.support.serve import serve, wait_until_it_answers

ADMIN = "*:*.unsafe-for-this-test-alone"
METRICS = "a-token-for-prometheus"
STREAMS = 12  # for each worker
VARIABLES = {
    "INIT_ADMIN_API_TOKENS": ADMIN,
    "FLAGADMIN_STREAMS": str(STREAMS),
    "FLAGADMIN_LOG_LEVEL": "CRITICAL",
    "FLAGADMIN_METRICS_TOKEN": METRICS,
    "FLAGADMIN_IMPORT_PROCESS_BYTES": "0",  # every import runs in a process of its own
}
# Answers are remembered by revision: a number that comes again would bring those of an earlier test.
NEW_REVISIONS = f"""
SET LOCAL session_replication_role = replica;
UPDATE projects_projectrevision SET revision = nextval('projects_revision_seq');
NOTIFY {CHANNEL};
"""


class Served:
    """A running server: its port, the process id of its parent process, and its data directory."""

    def __init__(self, port: int, pid: int, data_dir: Path) -> None:
        self.port, self.pid, self.data_dir = port, pid, data_dir
        self.url = f"http://127.0.0.1:{port}"
        self._connection: psycopg.Connection | None = None
        self._restore: Callable[[], None] = self.keep

    def keep(self) -> None:
        """What is in the database now is what `empty` restores."""
        self._restore = keep_rows("kept", self._superuser)

    def empty(self) -> None:
        """Restores the rows of the new installation. No worker answers from those of before."""
        self._restore()
        with self._superuser().transaction():
            self._superuser().execute(NEW_REVISIONS)
        with (self.data_dir / "commits").open("ab") as commits:
            commits.write(b"\n")

    def _superuser(self) -> psycopg.Connection:
        self._connection = self._connection or self.connect(SUPERUSER, autocommit=True)
        return self._connection

    def connect(self, user: str = APPLICATION, *, autocommit: bool = False) -> psycopg.Connection:
        host = Cluster(self.data_dir, durable=False).host
        return psycopg.connect(host=host, user=user, dbname="flagadmin", autocommit=autocommit)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def call(self, secret: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        with closing(Client(self.port, secret)) as client:
            status, answer = client.call(method, path, body, **headers)
        assert status < 300, answer
        return json.loads(answer) if answer else None

    def admin(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return self.call(ADMIN, method, f"/api/admin/{path}", body, **headers)

    def token(self, *projects: str, **more: Any) -> str:
        body = {"tokenName": "sdk", "type": "client", "environment": "development"}
        body |= {"projects": list(projects) or ["*"]} | more
        secret: str = self.admin("POST", "api-tokens", body)["secret"]
        return secret

    def flag(self, name: str, project: str = "default", **fields: Any) -> None:
        self.admin("POST", f"projects/{project}/features", {"name": name} | fields)

    def switch(self, name: str, to: str) -> None:
        self.admin("POST", f"projects/default/features/{name}/environments/development/{to}")

    def features(self, secret: str) -> dict[str, Any]:
        with closing(Client(self.port, secret)) as client:
            _, answer = client.call("GET", "/api/client/features", **{"Unleash-Client-Spec": "5.2.0"})
        return {flag["name"]: flag for flag in json.loads(answer)["features"]}

    def sql(self, statement: str, user: str = APPLICATION) -> Any:
        with self.connect(user, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def workers(self) -> list[int]:
        """The process ids of the workers."""
        return list(descendants(b"flagadmin-work", self.pid))

    def kill(self, worker: int) -> None:
        """Kills a worker, and waits until the server has replaced it."""
        others = {*self.workers()} - {worker}
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len({*self.workers()} - {worker}) > len(others))
        wait_until(lambda: is_ready(self.port))

    def megabytes(self) -> float:
        """What the largest worker holds."""
        return max(_megabytes(pid) for pid in self.workers())


def _megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serving(data_dir: Path) -> Iterator[Served]:
    """A server of its own, for tests that kill what the others would share."""
    with reserved_port() as port, serve(data_dir, port, **VARIABLES) as process:
        wait_until_it_answers(port, process)
        with closing(Served(port, process.pid, data_dir)) as served:
            yield served
        process.terminate()
        process.communicate()
    Cluster(data_dir, durable=False).stop()


@pytest.fixture(scope="session")
def running_server(
    tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]
) -> Iterator[Served]:
    data_dir = tmp_path_factory.mktemp("served") / "data"
    install(data_dir)
    with serving(data_dir) as served:
        served.keep()
        yield served


@pytest.fixture
def served(running_server: Served) -> Served:
    """The running server, with the rows of a new installation."""
    running_server.empty()
    return running_server
