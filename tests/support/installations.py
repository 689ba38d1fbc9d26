"""Copies of one migrated installation, for tests that start servers with a data directory of their own.

Making an installation takes several seconds: `initdb`, all migrations, and compressing the static files. So it is kept
between runs, as the migrated database is. Tests about the first start begin with an empty folder instead.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flagadmin.core.db.data_dir import make_data_dir
from flagadmin.core.server.static_files import hash_sources
from tests.support.live_server import PATIENCE
from tests.support.migrated_database import fingerprint
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
def install() -> Callable[[Path], None]:
    """``install(folder)`` fills a data directory as a server leaves it that was started once and is not durable."""
    folder = make_data_dir(ROOT / ".flagadmin" / "test")
    installation = folder / f"installation_{fingerprint()}_{hash_sources()[:16]}"

    def install_into(target: Path) -> None:
        with (folder / "installation.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not installation.exists():
                _make(installation)
            target.mkdir(exist_ok=True)
            subprocess.run(["cp", "-a", f"{installation}/.", str(target)], check=True)

    return install_into


def _make(installation: Path) -> None:
    """Deletes what was made of other sources, or half."""
    for old in installation.parent.glob("installation_*"):
        shutil.rmtree(old)
    draft = installation.with_name("installation_new")
    settings = environment(draft, DJANGO_SETTINGS_MODULE="flagadmin.settings")
    command = [sys.executable, "-c", _MAKE]
    subprocess.run(command, cwd=ROOT, env=settings, check=True, timeout=PATIENCE)
    draft.rename(installation)
