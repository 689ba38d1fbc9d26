"""Copies of one migrated installation, for tests that start servers with a data directory of their own.

Making an installation takes several seconds: `initdb`, all migrations, and compressing the static files. Tests
about the first start begin with an empty folder instead.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.live_server import PATIENCE
from tests.support.paths import ROOT
from tests.support.serve import environment

_MAKE = """
import django
django.setup()
from django.core.management import call_command
from flagadmin.core.server.static_files import collect_static_files
call_command("migrate", verbosity=0)
collect_static_files()
"""


@pytest.fixture(scope="session")
def install(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """``install(folder)`` fills a data directory as a server leaves it that was started once and is not durable."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # all workers of a run share it
    return lambda target: _copy(_made(folder), target)


def _made(folder: Path) -> Path:
    installation, lock = folder / "installation", folder / "installation.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not installation.exists():
            draft = folder / "installation.new"
            settings = environment(draft, DJANGO_SETTINGS_MODULE="flagadmin.settings")
            command = [sys.executable, "-c", _MAKE]
            subprocess.run(command, cwd=ROOT, env=settings, check=True, timeout=PATIENCE)
            draft.rename(installation)
    return installation


def _copy(installation: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{installation}/.", str(target)], check=True)
