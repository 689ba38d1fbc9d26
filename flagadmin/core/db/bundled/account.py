"""Chooses the account that runs the bundled PostgreSQL server, which refuses to run as root."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flagadmin.core.db.bundled.errors import EmbeddedServerError

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

    Only root switches accounts: to the owner of the data directory, so that both root and the owner can start
    the server; if that is root, to `flagadmin` if the account exists; otherwise to `nobody`, whose other
    processes could then access the files.

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
