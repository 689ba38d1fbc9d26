"""The backup of every released version is restored, migrated and served: it answers what that version answered."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from flagadmin.core.db.bundled import server
from flagadmin.core.db.migrate import NewerDatabaseError, migrate
from tests.support.live_server import reserved_port
from tests.support.serve import environment, serve, wait_until_it_answers
from tests.upgrades.answers import answers

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob("*/backup"))


@pytest.mark.processes
@pytest.mark.exhaustive
@pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)
def test_an_upgraded_installation_answers_as_before(release, tmp_path):
    recorded = json.loads((release / "answers.json").read_text())
    data = tmp_path / "data"
    restore = [sys.executable, "manage.py", "restore", str(release / "backup")]
    restored = subprocess.run(restore, env=environment(data), capture_output=True, text=True)
    assert restored.returncode == 0, restored.stderr
    try:
        with reserved_port() as port, serve(data, port, workers=1) as process:
            wait_until_it_answers(port, process)
            answers_now = answers(port, recorded["secret"], recorded["sdk"])
    finally:
        server.release(data)
    for part, expected in recorded["answers"].items():
        assert answers_now[part] == expected, part


def test_every_release_of_the_changelog_is_tested():
    changelog = Path("CHANGELOG.md").read_text()
    headings = [line for line in changelog.splitlines() if line.startswith("## ")]
    released = {heading.split()[1] for heading in headings if "(Unreleased)" not in heading}
    assert {release.name for release in RELEASES} == released


@pytest.mark.django_db
def test_a_server_refuses_a_database_of_a_newer_version():
    MigrationRecorder(connection).record_applied("projects", "9999_of_a_newer_version")
    MigrationRecorder(connection).record_applied("another_application", "0001_initial")
    with pytest.raises(
        NewerDatabaseError, match=r"\(projects\.9999_of_a_newer_version\)\. Start that version"
    ):
        migrate()
