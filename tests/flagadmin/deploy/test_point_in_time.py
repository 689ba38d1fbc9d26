"""A database whose log pgBackRest archives is taken back to a moment, as docs/operations/back-up.md says."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.documentation.blocks import blocks
from tests.support.backups import RELEASED, held, load, manage, url
from tests.support.live_server import wait_until
from tests.support.postgresql_versions import programs_of
from tests.support.programs import program
from tests.support.replication import DEPLOY, ONE_SERVER, TRUSTING, Server, servers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

PAGE = "docs/operations/back-up.md"
PASSWORD = "correct horse battery"


def test_a_lost_table_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("pgbackrest", "pgbackrest")
    prepare, back = [block.text for block in blocks(PAGE) if "pgbackrest --stanza" in block.text]
    with servers(1, programs_of(15)) as [server]:
        configure(server, monkeypatch)
        server.start()
        for statement in ONE_SERVER.strip().splitlines():
            server.ask(statement)
        there = {"DATABASE_URL": url(server)}
        load(RELEASED, server)
        manage(tmp_path, "restore", "--recovered", **there).check_returncode()
        run(server, *commands(prepare))
        add_admin("before", tmp_path, **there)
        moment = server.ask("SELECT clock_timestamp()")
        last = int(server.ask("SELECT last_value FROM projects_revision_seq", "flagadmin"))
        server.ask("DROP TABLE projects_flag CASCADE", "flagadmin")
        server.ask("SELECT pg_switch_wal()")
        server.stop()

        [restore] = commands(back)
        run(server, restore.replace("2026-11-23 12:02:59+00", moment))
        server.start()
        wait_until(lambda: server.ask("SELECT pg_is_in_recovery()") == "f")
        done = manage(tmp_path, "restore", "--recovered", **there)
        assert "people 7" in held(done), "six of the backup, and one who was added before that moment"
        assert int(server.ask("SELECT count(*) FROM projects_flag", "flagadmin")) > 0
        revision = server.ask("SELECT min(revision) FROM projects_projectrevision", "flagadmin")
        assert int(revision) > last, "an SDK must not be told that it has the latest flags"


def configure(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets up the server with the two files of deploy/, whose folders are the test's."""
    repository, logs = server.folder.with_name("repository"), server.folder.with_name("logs")
    text = (DEPLOY / "pgbackrest.conf").read_text()
    for shipped, here in {
        "/srv/pgbackrest": repository,
        "/var/lib/postgresql/17/main": server.folder,
        "/var/run/postgresql": logs,
    }.items():
        assert str(shipped) in text
        text = text.replace(shipped, str(here))
    text += f"pg1-port={server.port}\npg1-user=postgres\n"
    server.make_folder(repository, {})
    server.make_folder(logs, {"pgbackrest.conf": text})
    monkeypatch.setenv("PGBACKREST_CONFIG", str(logs / "pgbackrest.conf"))
    for kind in ("LOG", "LOCK", "SPOOL"):
        monkeypatch.setenv(f"PGBACKREST_{kind}_PATH", str(logs))
    archive = (DEPLOY / "archive.conf").read_text()
    server.initialize(f"local all all trust\n{TRUSTING}", archive)
    server.sockets = str(logs)


def commands(block: str) -> list[str]:
    """The commands of pgBackRest in a block of the page, without sudo."""
    found = re.findall(r"^sudo -u postgres (pgbackrest .*?)(?: +#.*)?$", block, re.MULTILINE)
    assert found
    return found


def run(server: Server, *lines: str) -> None:
    for line in lines:
        done = subprocess.run(
            shlex.split(line), cwd="/", capture_output=True, text=True, check=False, **server.as_its_account()
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def add_admin(name: str, data: Path, **variables: str) -> None:
    done = manage(data, "createadmin", name, "--password-stdin", text=PASSWORD, **variables)
    assert done.returncode == 0, done.stderr
