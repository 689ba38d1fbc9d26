"""The servers of other PostgreSQL versions that this machine has.

Debian's, the older one in the package of the bundled one, and those whose folders of programs are named in
FLAGADMIN_TEST_POSTGRESQL (separated by colons).
"""

import functools
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flagadmin.core.db.bundled.programs import find_wheel_root

SUPPORTED = (15, 16, 17, 18)


def programs_of(version: int) -> Path:
    """The folder with a server's programs. Skips the test if the machine has no server of that version."""
    folder = _versions().get(version)
    if folder is None:
        pytest.skip(
            f"There is no server of PostgreSQL {version}, nothing was tried with it. Name the folder of its programs in "
            "FLAGADMIN_TEST_POSTGRESQL."
        )
    return folder


@functools.cache
def _versions() -> dict[int, Path]:
    return {_version_of(folder): folder for folder in _folders() if (folder / "postgres").exists()}


def _folders() -> Iterator[Path]:
    root = find_wheel_root()
    yield from (folder / "bin" for folder in root.parent.glob("pginstall*"))
    yield from Path("/usr/lib/postgresql").glob("*/bin")
    yield from map(Path, filter(None, os.environ.get("FLAGADMIN_TEST_POSTGRESQL", "").split(":")))


def _version_of(folder: Path) -> int:
    shown = subprocess.run(
        [folder / "postgres", "--version"], check=True, capture_output=True, text=True
    ).stdout
    match = re.search(r"\) (\d+)", shown)
    assert match, shown
    return int(match[1])
