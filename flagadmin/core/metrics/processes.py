"""Each process counts in files of its own, all in one directory: prometheus_client's multiprocess mode.

Processes have names such as ``worker-1`` instead of their ids, so that one that replaces a killed one takes its files
over and counts on.
"""

import fcntl
import os
import shutil
from itertools import count
from pathlib import Path
from typing import TextIO

from prometheus_client import values

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's
KINDS = ("counter", "gauge_all", "histogram")  # of files: prometheus_client names them so
SIZE = 1_000_000  # bytes that a file has from the beginning

_names: dict[str, TextIO] = {}  # this process's one, with the file that it keeps locked


def begin(directory: Path) -> None:
    """Makes this process, and those it starts that attach, count from 0 in this directory. Raises OSError."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    os.environ[DIRECTORY] = str(directory)
    attach("main")


def attach(role: str) -> None:
    """Makes this process count, if :func:`begin` was called, under a name that begins with its role.

    What was counted before is lost: an instrument without labels must be declared afterwards.
    """
    if (directory := os.environ.get(DIRECTORY)) and not _names:
        name, lock = _claim(Path(directory), role)
        _names[name] = lock
        for kind in KINDS:
            _take_space(Path(directory) / f"{kind}_{name}.db")
        values.ValueClass = values.MultiProcessValue(lambda: name)


def process_name() -> str:
    return next(iter(_names), "main-1")


def is_alive(directory: Path, name: str) -> bool:
    with (directory / f"{name}.lock").open() as file:
        return not _locks(file, fcntl.LOCK_SH)


def _claim(directory: Path, role: str) -> tuple[str, TextIO]:
    """The first name that no living process has."""
    for number in count(1):
        name = f"{role}-{number}"
        file = (directory / f"{name}.lock").open("a")
        if _locks(file, fcntl.LOCK_EX):
            return name, file
        file.close()
    raise AssertionError


def _locks(file: TextIO, how: int) -> bool:
    """The lock ends when the file is closed, or with the process."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_space(path: Path) -> None:
    """Writing to a mapped file for which the disk has no space later would kill the process."""
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)
