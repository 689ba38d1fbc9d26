"""Backup and restore of the whole database, on a separate bundled server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from flagadmin.db import backup as backups
from flagadmin.db.backup import BackupError
from tests.support.live_server import PATIENT
from tests.support.paths import ROOT

BEGIN = """
import json, sys
import django
django.setup()
from django.apps import apps
from django.core.management import CommandError, call_command
from flagadmin.audit.models import AuditEvent
from projects.models import Flag
from projects.revision import revisions

def told():
    models = [m for a in ("projects", "groups", "audit") for m in apps.get_app_config(a).get_models()]
    counts = {m._meta.label: m._base_manager.count() for m in models if m.__name__ != "ProjectRevision"}
    return {"counts": counts, "flags": sorted(Flag.objects.values_list("name", flat=True)),
            "shop": revisions().get("shop")}

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
answer["latest"] = revisions()["shop"]
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
def test_there_and_back(tmp_path):
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
    assert "append_only" in there["append-only"]
    assert there["statistics"] > 0


def test_what_is_no_backup(db, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a backup")
    with pytest.raises(CommandError, match=r"is not a backup made by"):
        call_command("restore", str(file))
    file.write_bytes(b"PGDMP and then nothing")
    with pytest.raises(CommandError, match="Cannot read"):
        call_command("restore", str(file))
    with pytest.raises(CommandError, match=r"File .* not found"):
        call_command("restore", str(tmp_path / "nosuch"))
    with pytest.raises(CommandError, match=r"Folder .* not found"):
        call_command("backup", str(tmp_path / "nosuch" / "file"))


def test_a_backup_of_a_newer_version(db, tmp_path, monkeypatch):
    file = tmp_path / "newer.backup"
    file.write_bytes(backups.MAGIC)
    listed = b"COPY\n1\tprojects\t0001_initial\t2026\n2\tprojects\t9999_later\t2026\n"
    monkeypatch.setattr(backups, "_sql_of", lambda *args: listed)
    with pytest.raises(BackupError, match=r"newer version .*projects\.9999_later"):
        backups.check_archive(file)
    monkeypatch.setattr(backups, "_sql_of", lambda *args: b"COPY\n1\tauth\t0001_initial\t2026\n")
    with pytest.raises(BackupError, match="another application"):
        backups.check_archive(file)


def test_client_programs_that_are_missing_or_too_old(db, monkeypatch, tmp_path):
    monkeypatch.setattr(backups, "is_bundled", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupError, match="pg_dump is not installed"):
        backups.tool("pg_dump")
    old = tmp_path / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 12.3'\n")
    old.chmod(0o755)
    with pytest.raises(BackupError, match=r"is version 12 and cannot back up a server of version \d+"):
        backups.backup(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_an_empty_database_holds_nothing(db):
    assert backups.holds_data() is False
