"""Runs `backup` and `restore` as an operator does."""

import re
import subprocess
import sys
from pathlib import Path

from flagadmin.core.db.bundled.programs import find_tool
from tests.support.paths import ROOT
from tests.support.replication import Server
from tests.support.serve import environment

RELEASED = ROOT / "tests" / "upgrades" / "1.3.0" / "backup"
KEY = "of all these installations"
_HELD = re.compile(r"flags \d+, projects \d+, people \d+, events \d+")


def manage(
    data: Path, *arguments: str | Path, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command with no program on the PATH, so that it cannot find a client of PostgreSQL there."""
    return subprocess.run(
        [sys.executable, "-m", "flagadmin", *map(str, arguments)],
        cwd=ROOT,
        env=environment(data, SECRET_KEY=KEY, **variables) | {"PATH": ""},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def held(done: subprocess.CompletedProcess[str]) -> str:
    """What the command says about flags, projects, people and events."""
    assert done.returncode == 0, done.stderr
    totals = _HELD.search(done.stdout)
    assert totals, done.stdout
    return totals[0]


def refuse(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def url(server: Server, parameters: str = "") -> str:
    return f"postgresql://flagadmin@127.0.0.1:{server.port}/flagadmin{parameters}"


def load(archive: Path, server: Server) -> None:
    """Restores an archive into the server's database."""
    options = ("--no-owner", "--no-privileges", f"--dbname={url(server)}")
    done = subprocess.run(
        [find_tool("pg_restore"), *options, archive], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or "errors ignored on restore: 1" in done.stderr  # transaction_timeout
