"""Files that commands read and write, and requests that they refuse."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError, OutputWrapper

from flagadmin.core.errors import AppError

REFUSED = 2
"""The exit status of refusals and failures; 1 if 2 has another meaning."""


def read_bytes(name: str, status: int = 1) -> bytes:
    """Reads a file, or standard input (``-``)."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"Cannot read {name}: {error.strerror}", returncode=status) from None


def write_bytes(path: Path, content: bytes, status: int = 1) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", returncode=status) from None


def read_percent(text: str) -> float:
    percent = float(text.removesuffix("%"))
    if not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"must be from 0 to 100, not {text}")
    return percent


@contextmanager
def refusing(stderr: OutputWrapper) -> Iterator[None]:
    """Prints the problems of an error, one per line, and exits with its message and REFUSED."""
    try:
        yield
    except AppError as error:
        for problem in error.details:
            stderr.write(str(problem))
        raise CommandError(error.message, returncode=REFUSED) from None
