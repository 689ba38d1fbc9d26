"""Backup and restore of the whole database, on a separate bundled server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from flagadmin import __version__
from flagadmin.core.db.backups import backup as backups
from flagadmin.core.db.backups import restore as restores
from flagadmin.core.db.backups.backup import read_label, write_label
from flagadmin.core.db.backups.programs import BackupError
from tests.support.live_server import PATIENT
from tests.support.paths import ROOT

BEGIN = """
import json, sys
import django
django.setup()
from django.apps import apps
from django.core.management import CommandError, call_command
from flagadmin.core.audit.models import AuditEvent
from projects.models import Flag
from projects.revision import read_revisions

def told():
    models = [m for a in ("projects", "groups", "audit") for m in apps.get_app_config(a).get_models()]
    counts = {m._meta.label: m._base_manager.count() for m in models if m.__name__ != "ProjectRevision"}
    return {"counts": counts, "flags": sorted(Flag.objects.values_list("name", flat=True)),
            "shop": read_revisions().get("shop")}

def refused(*command):
    try:
        call_command(*command)
    except CommandError as error:
        return str(error)

file, answer = sys.argv[1], {}
"""
HERE = """
from groups.access import Caller
from projects.projects.actions import update_project
from tests.support.cast import make_project, make_token, make_user
from tests.support.flags import add_strategy, make_flag

call_command("migrate", verbosity=0)
make_project("shop"); make_user("ada")
add_strategy(make_flag("cart"), name="flexibleRollout", parameters={"rollout": "50"})
make_token("backend", projects=["shop"], environment="development")
update_project("shop", {"description": "sells"}, caller=Caller.system())
answer["before"] = told()
call_command("backup", file)
answer["backup again"] = refused("backup", file)
make_flag("menu")
answer["restore"] = refused("restore", file)
answer["latest"] = read_revisions()["shop"]
call_command("restore", file, force=True)
answer["after"] = told()
"""
THERE = """
from django.db import Error
call_command("restore", file)
answer["after"] = told()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'projects_strategy'")
    answer["statistics"] = cursor.fetchone()[0]
try:
    AuditEvent.objects.update(type="x")
except Error as error:
    answer["append-only"] = str(error)
call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
"""


def run(script: str, folder: Path, file: Path) -> dict[str, Any]:
    """What the script answers in an installation with a data directory of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DJANGO_", "DATABASE_"))}
    environment = (
        kept
        | PATIENT
        | {
            "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
            "FLAGADMIN_DATA_DIR": str(folder),
            "FLAGADMIN_DATABASE_DURABLE": "0",
            "FLAGADMIN_LOG_LEVEL": "ERROR",
        }
    )
    command = [sys.executable, "-c", f"{BEGIN}{script}\nprint(json.dumps(answer))", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


@pytest.mark.processes
def test_a_restore_brings_back_what_the_backup_held(tmp_path):
    """Also what was done between backup and restore is gone, and no revision comes twice."""
    file = tmp_path / "all.backup"
    here = run(HERE, tmp_path / "here", file)
    assert file.stat().st_mode & 0o077 == 0
    assert "already exists" in here["backup again"]
    assert "The database is not empty" in here["restore"]
    for key in ("counts", "flags"):
        assert here["after"][key] == here["before"][key]
    assert here["after"]["shop"] > here["latest"]

    # Into a fresh installation it needs no --force; the rules of its tables come with it.
    there = run(THERE, tmp_path / "there", file)
    assert there["after"]["counts"] == here["before"]["counts"]
    # An SDK may know later revisions than the backup: it must not be told that it has the latest flags.
    assert there["after"]["shop"] > here["latest"] + 100_000
    assert "append_only" in there["append-only"]
    assert there["statistics"] > 0


def test_what_is_no_backup_is_refused(db, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a backup")
    with pytest.raises(CommandError, match=r"is not a backup made by"):
        call_command("restore", str(file))
    file.write_bytes(b"PGDMP and then nothing")
    with pytest.raises(CommandError, match=r"pg_restore failed\. Nothing was changed"):
        call_command("restore", str(file))
    with pytest.raises(CommandError, match=r"File .* not found"):
        call_command("restore", str(tmp_path / "nosuch"))
    with pytest.raises(CommandError, match=r"Folder .* not found"):
        call_command("backup", str(tmp_path / "nosuch" / "file"))


@pytest.mark.parametrize(
    "options", [{}, {"recovered": True, "file": "x"}, {"recovered": True, "check": True}]
)
def test_restore_needs_a_file_or_recovered(options):
    with pytest.raises(CommandError, match="Name a file, or use --recovered alone"):
        call_command("restore", **options)


def test_a_backup_of_a_newer_version(db, tmp_path, monkeypatch):
    file = tmp_path / "newer.backup"
    file.write_bytes(restores.MAGIC)
    listed = "COPY\n1\tprojects\t0001_initial\t2026\n2\tprojects\t9999_later\t2026\n"
    monkeypatch.setattr(restores, "_read_migrations", lambda path: listed)
    with pytest.raises(BackupError, match=r"newer version .*projects\.9999_later"):
        restores.check_archive(file)
    monkeypatch.setattr(restores, "_read_migrations", lambda path: "COPY\n1\tauth\t0001_initial\t2026\n")
    with pytest.raises(BackupError, match="another application"):
        restores.check_archive(file)


def test_an_archive_without_a_label(tmp_path):
    file = tmp_path / "old"
    file.write_bytes(b"PGDMP")
    assert read_label(file) is None


@pytest.mark.parametrize("line", [b"", b"{", b"{}", b'{"version": 1}', b'{"sha256": 7}', b"\xff", b"7"])
def test_an_unreadable_label(tmp_path, line):
    file = tmp_path / "new"
    file.write_bytes(b"PGDMP\nflagadmin backup: " + line + b"\n")
    with pytest.raises(BackupError, match="new is damaged"):
        read_label(file)


def test_a_label_says_what_made_it(tmp_path):
    file = tmp_path / "new"
    file.write_bytes(b"PGDMP" * 1000)
    write_label(file)
    assert read_label(file)["version"] == __version__


@pytest.mark.parametrize("position", [5, 2_000, 4_999, 5_030, -5])
def test_a_damaged_backup_is_refused_before_any_of_it_is_restored(db, tmp_path, position):
    """In the archive, and in what the label says of it."""
    file = tmp_path / "new"
    file.write_bytes(b"PGDMP" * 1000)
    write_label(file)
    written = bytearray(file.read_bytes())
    written[position] ^= 1
    file.write_bytes(written)
    with pytest.raises(CommandError, match="new is damaged"):
        call_command("restore", str(file), force=True)


def test_files_that_cannot_be_written_or_read(transactional_db):
    with pytest.raises(CommandError, match="/proc/"):
        call_command("backup", "/proc/backup")
    with pytest.raises(CommandError, match="Input/output error"):
        call_command("restore", "/proc/self/mem")


def test_a_table_that_stays_locked(transactional_db, tmp_path, monkeypatch):
    monkeypatch.setattr(backups, "MAX_LOCK_SECONDS", 1)
    parameters = connection.get_connection_params()
    with psycopg.connect(**parameters) as other:
        other.execute("LOCK TABLE projects_flag IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(BackupError, match=r"due to (statement|lock) timeout"):
            backups.backup(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_old_dated_backups_are_removed(tmp_path):
    names = [f"flagadmin-2026110{day}T030000Z.backup" for day in range(1, 6)]
    for name in (*names, "mine.backup", ".flagadmin-20261101T030000Z.backup.7.part"):
        (tmp_path / name).touch()
    new_draft, old_draft = (
        tmp_path / ".flagadmin-20261105T030000Z.backup.8.part",
        tmp_path / ".flagadmin-20261101T030000Z.backup.7.part",
    )
    new_draft.touch()
    os.utime(old_draft, (0, 0))
    removed = backups.remove_old_backups(tmp_path, keep=2)
    assert [path.name for path in removed] == names[:3]
    assert {path.name for path in tmp_path.iterdir()} == {*names[3:], "mine.backup", new_draft.name}
    assert backups.remove_old_backups(tmp_path, keep=2) == []


def test_keep_needs_a_folder_and_a_number(db, tmp_path):
    with pytest.raises(CommandError, match="--keep needs a folder"):
        call_command("backup", str(tmp_path / "file"), keep=1)
    for number in ("0", "-1", "many"):
        with pytest.raises(CommandError, match="is not a number of backups"):
            call_command("backup", str(tmp_path), f"--keep={number}")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_other_databases_are_refused(db, tmp_path, settings, monkeypatch, command):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "flagadmin.core.db.postgresql")
    (tmp_path / "file").write_bytes(b"PGDMP")
    with pytest.raises(CommandError, match=r"are for the bundled database.* pgBackRest, or pg_dump"):
        call_command(command, str(tmp_path / "file"), force=True)
