"""Proves that a backup can be restored: in a scratch database, which is removed afterwards."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings

import flagadmin
from flagadmin.core.db.backups.errors import BackupError


def check_backup(path: Path) -> str:
    """Runs `restore` as an operator would, on a bundled server of its own. Returns what that says.

    Raises BackupError.
    """
    with tempfile.TemporaryDirectory(prefix="flagadmin-check-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "flagadmin", "restore", str(path.resolve())],
            cwd=Path(flagadmin.__file__).parents[1],
            env=_make_environment(folder),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BackupError(f"{path} cannot be restored: {done.stderr.strip()}")
    output = " ".join(f"{done.stdout} {done.stderr}".split())
    return f"Checked in a scratch database, which has been removed: {output}"


def _make_environment(folder: str) -> dict[str, str]:
    """That of this process, with a database and a data directory of its own, and the same keys."""
    other = {"DATABASE_URL", "DATABASE_REPLICA_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in other}
    key = settings.SECRET_KEY if isinstance(settings.SECRET_KEY, str) else settings.SECRET_KEY.decode()
    scratch = {"FLAGADMIN_DATA_DIR": folder, "FLAGADMIN_DATABASE_DURABLE": "0", "SECRET_KEY": key}
    return environment | scratch
