"""Installs the locked packages of a folder of ``tests/clients`` for programs in Node."""

import fcntl
import subprocess
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.programs import program


def installed(client: str) -> Path:
    """``tests/clients/CLIENT`` with its ``node_modules``. No package's own scripts are run."""
    npm, folder = program("npm"), ROOT / "tests" / "clients" / client
    lock, done = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    with (folder / "package.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # one test process installs, the others find it
        if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
            made = subprocess.run(
                [npm, "ci", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, check=False
            )
            assert made.returncode == 0, made.stderr
    return folder
