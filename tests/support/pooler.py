"""Runs the real PgBouncer with deploy/pgbouncer.ini in front of a PostgreSQL server on 127.0.0.1."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.live_server import wait_until
from tests.support.paths import ROOT
from tests.support.programs import program
from tests.support.replication import APPLICATION, PASSWORDS, Server


@contextmanager
def pooled(server: Server, port: int, **instead: str) -> Iterator[None]:
    """PgBouncer answers at this port until the context ends, with other settings ``instead`` of those of deploy/."""
    folder = server.folder.with_name("pgbouncer")
    settings = {
        "flagadmin": f"host=127.0.0.1 port={server.port} dbname=flagadmin",
        "listen_port": str(port),
        "auth_file": f"{folder}/userlist.txt",
    } | instead
    text = (ROOT / "deploy" / "pgbouncer.ini").read_text()
    lines = [_replaced(line, settings) for line in text.splitlines()]
    assert not settings, settings
    users = f'"{APPLICATION}" "{PASSWORDS["application_password"]}"\n'
    server.make_folder(folder, {"userlist.txt": users, "pgbouncer.ini": "\n".join([*lines, ""])})
    with (folder / "log").open("wb") as log:
        command = [program("pgbouncer"), str(folder / "pgbouncer.ini")]
        process = subprocess.Popen(command, stderr=log, stdout=log, cwd="/", **server.as_its_account())
    try:
        wait_until(
            lambda: process.poll() is not None or server.asks("SELECT 1", "flagadmin", APPLICATION, port)
        )
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.kill()
        process.wait()


def _replaced(line: str, settings: dict[str, str]) -> str:
    name, separator, _ = line.partition(" = ")
    return f"{name} = {settings.pop(name)}" if separator and name in settings else line
