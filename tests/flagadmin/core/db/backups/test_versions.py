"""A bundled database moves to every supported version of PostgreSQL, as docs/operations/back-up.md says."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flagadmin.core.db.bundled import server as bundled
from flagadmin.core.db.bundled.programs import find_tool
from tests.documentation.blocks import blocks
from tests.support.backups import KEY, RELEASED, held, manage, refuse, url
from tests.support.paths import ROOT
from tests.support.postgresql_versions import SUPPORTED, programs_of
from tests.support.replication import one_server
from tests.support.serve import environment

pytestmark = [pytest.mark.processes, pytest.mark.machines]
PAGE = [block.text for block in blocks("docs/operations/back-up.md") if block.language == "sh"]
[MOVE] = [text for text in PAGE if "flagadmin backup move.backup" in text]
DUMP, RESTORE = (text for text in PAGE if "flagadmin.dump" in text)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The data directory of a bundled database, and what it holds."""
    data = tmp_path_factory.mktemp("bundled") / "data"
    try:
        yield data, held(manage(data, "restore", RELEASED))
    finally:
        bundled.release(data)


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_move_and_a_dump(version: int, installation: tuple[Path, str], tmp_path: Path) -> None:
    data, holds = installation
    (data / "secret_key").write_text(KEY)
    with one_server(programs_of(version)) as server:
        variables = environment(data)
        move = MOVE.replace("postgresql://flagadmin:PASSWORD@db1/flagadmin", url(server))
        move = move.replace("/var/lib/flagadmin", str(data))
        assert held(run(move, find_tool("psql").parent, tmp_path, variables)) == holds

        there = {"DATABASE_URL": url(server), "SECRET_KEY": KEY}
        named = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "postgres"}
        dump = DUMP + RESTORE.replace("sudo -u postgres", "")
        assert held(run(dump, programs_of(version), tmp_path, variables | there | named)) == holds
        for command in (["backup", "again"], ["restore", tmp_path / "move.backup", "--force"]):
            refuse(manage(tmp_path, *command, DATABASE_URL=url(server)), "are for the bundled database")


def run(
    commands: str, programs: Path, folder: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs them with these programs of PostgreSQL."""
    program = folder / "flagadmin"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/manage.py "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(folder), str(programs), os.environ["PATH"]))
    script = ["bash", "-euo", "pipefail", "-c", commands]
    return subprocess.run(
        script, cwd=folder, env=variables | {"PATH": path}, capture_output=True, text=True, check=False
    )


def test_recovered_needs_an_installation(tmp_path: Path) -> None:
    with one_server() as server:
        there = {"DATABASE_URL": url(server)}
        refuse(
            manage(tmp_path, "restore", "--recovered", **there),
            "There is no flagadmin installation in the database flagadmin at 127.0.0.1",
        )
