"""A database with an archive of its write-ahead log is taken back to a moment, as docs/operations.md says."""

from pathlib import Path

import pytest

from tests.support.backups import RELEASED, held, manage, url
from tests.support.live_server import wait_until
from tests.support.paths import ROOT
from tests.support.replication import ONE_SERVER, servers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

CLIENTS = "host all,replication all 127.0.0.1/32 trust\n"
PASSWORD = "correct horse battery"
SETTINGS = """
wal_level = replica
archive_mode = on
archive_timeout = 60
archive_command = 'test ! -f /srv/archive/%f && cp %p /srv/archive/%f.new && mv /srv/archive/%f.new /srv/archive/%f'
"""
RECOVERY = """
restore_command = 'cp /srv/archive/%f %p'
recovery_target_time = '2026-11-23 09:59:00+00'
recovery_target_action = promote
"""


def test_the_documentation_has_these_settings() -> None:
    lines = (ROOT / "docs/operations.md").read_text().splitlines()
    text = "\n".join(line.strip() for line in lines)  # in a list, they are indented
    assert SETTINGS.strip() in text
    assert RECOVERY.strip() in text


def test_back_to_a_moment(tmp_path: Path) -> None:
    with servers(2) as [lost, recovered]:
        archive = lost.folder.with_name("archive")
        lost.make_folder(archive, {})
        lost.initialize(CLIENTS, SETTINGS.replace("/srv/archive", str(archive)))
        lost.start()
        for statement in ONE_SERVER.strip().splitlines():
            lost.ask(statement)
        there = {"DATABASE_URL": url(lost)}
        held(manage(tmp_path, "restore", RELEASED, **there))
        lost.copy_to(recovered)
        add_admin("before", tmp_path, **there)
        moment = lost.ask("SELECT clock_timestamp()")
        add_admin("after", tmp_path, **there)
        last = int(lost.ask("SELECT last_value FROM projects_revision_seq", "flagadmin"))
        segment = lost.ask("SELECT pg_walfile_name(pg_switch_wal())")
        wait_until((archive / segment).exists)
        lost.kill()

        with (recovered.folder / "postgresql.conf").open("a") as file:
            text = RECOVERY.replace("/srv/archive", str(archive)).replace("2026-11-23 09:59:00+00", moment)
            file.write(text)
        recovered.make_file("recovery.signal")
        recovered.start()
        wait_until(lambda: recovered.ask("SELECT pg_is_in_recovery()") == "f")
        there = {"DATABASE_URL": url(recovered)}
        done = manage(tmp_path, "restore", "--recovered", **there)
        assert "people 7" in held(done), "six of the backup, and one who was added before that moment"
        assert (
            recovered.ask("SELECT username FROM groups_user ORDER BY id DESC LIMIT 1", "flagadmin")
            == "before"
        )
        revision = recovered.ask("SELECT min(revision) FROM projects_projectrevision", "flagadmin")
        assert int(revision) > last, "an SDK must not be told that it has the latest flags"


def add_admin(name: str, data: Path, **variables: str) -> None:
    done = manage(data, "createadmin", name, "--password-stdin", text=PASSWORD, **variables)
    assert done.returncode == 0, done.stderr
