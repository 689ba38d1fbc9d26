"""The bundled server's process has no access to the application's secrets."""

import os
import pwd
import socket
import struct
from pathlib import Path

import psycopg
import pytest

from flagadmin.core.db.bundled.cluster import SOCKET_NAME, Cluster
from flagadmin.core.db.bundled.programs import APPLICATION, SUPERUSER, Account, list_accounts_let_in
from flagadmin.core.db.bundled.server import ensure_running, release


def answer_to_whoever_asks_here(role: str) -> bytes:
    """To a start-up message (protocol 3.0) from this process's effective account, in its working directory."""
    message = struct.pack("!i", 196_608) + f"user\0{role}\0database\0flagadmin\0\0".encode()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(SOCKET_NAME)
        asking.sendall(struct.pack("!i", len(message) + 4) + message)
        return asking.recv(1000)


@pytest.mark.processes
def test_the_server_does_not_inherit_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INIT_ADMIN_API_TOKENS", "*:*.not-for-the-database")
    monkeypatch.setenv("PGHOST", "somewhere")
    ensure_running(tmp_path, durable=False)
    try:
        pid = Cluster(tmp_path, durable=False).postmaster_pid()
        names = {
            line.partition("=")[0] for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if line
        }
    finally:
        release(tmp_path)
    assert names <= {"PATH", "LD_LIBRARY_PATH", "LC_ALL", "PG_GRANDPARENT_PID"}


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server under another account")
def test_the_account_that_runs_the_server_for_root_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other services of the machine run under `nobody` too."""
    given = ensure_running(tmp_path, durable=False)
    try:
        with psycopg.connect(**given) as connection:
            assert connection.execute("SELECT current_user").fetchone() == (APPLICATION,)
        # In the folder itself: those above are root's alone.
        monkeypatch.chdir(tmp_path / "postgres")
        nobody = pwd.getpwnam("nobody")
        os.setegid(nobody.pw_gid)
        os.seteuid(nobody.pw_uid)
        try:
            answers = [answer_to_whoever_asks_here(role) for role in (APPLICATION, SUPERUSER)]
        finally:
            os.seteuid(0)
            os.setegid(0)
    finally:
        release(tmp_path)
    assert all(b"Peer authentication failed" in answer for answer in answers)


def test_root_and_the_owner_are_let_in_but_not_nobody() -> None:
    assert list_accounts_let_in(Account(name="nobody", uid=65534, gid=65534)) == {"root"}
    assert list_accounts_let_in(Account(name="anna", uid=1000, gid=1000)) == {"root", "anna"}
    assert "root" in list_accounts_let_in(None)
