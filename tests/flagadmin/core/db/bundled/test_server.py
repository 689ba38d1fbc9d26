"""The bundled server is started by its first user, shared, and stopped by the last, even after crashes.

Every test starts its own processes as users of the server.
"""

import gc
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest

from flagadmin.core.db.bundled import programs
from flagadmin.core.db.bundled.cluster import SOCKET_NAME, Cluster
from flagadmin.core.db.bundled.programs import Account
from flagadmin.core.db.bundled.server import ensure_running, release
from tests.support.live_server import PATIENCE, wait_until
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

# Uses the server, says "ready", and leaves when its standard input ends.
USER = """
import sys
from pathlib import Path
import psycopg
from flagadmin.core.db.bundled.server import ensure_running
with psycopg.connect(**ensure_running(Path(sys.argv[1]), durable="durable" in sys.argv)) as connection:
    connection.execute("SELECT pg_advisory_xact_lock(1)")  # IF NOT EXISTS alone is no protection
    connection.execute("CREATE TABLE IF NOT EXISTS visit (at timestamptz DEFAULT now())")
    connection.execute("INSERT INTO visit DEFAULT VALUES")
    visits = connection.execute("SELECT count(*) FROM visit").fetchone()[0]
print("ready", visits, flush=True)
sys.stdin.read()
"""


class User:
    """A process that uses the server in `data_dir`."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir), *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def visits(self) -> int:
        assert self.process.stdout
        word, visits = self.process.stdout.readline().split()
        assert word == "ready"
        return int(visits)

    def leave(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(timeout=PATIENCE) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    Cluster(folder, durable=False).stop()


@pytest.fixture
def user(data_dir: Path) -> Iterator[Callable[..., User]]:
    users: list[User] = []

    def make(*options: str) -> User:
        users.append(User(data_dir, *options))
        return users[-1]

    yield make
    for made in users:
        made.kill()


def is_running(data_dir: Path) -> bool:
    return Cluster(data_dir, durable=False).is_listening()


def test_a_second_start_finds_the_data_of_the_first(data_dir: Path, user: Callable[..., User]) -> None:
    for visits in (1, 2):
        visitor = user()
        assert visitor.visits() == visits
        assert is_running(data_dir)
        visitor.leave()
        assert not is_running(data_dir)


def test_processes_that_start_at_once_share_one_server(data_dir: Path, user: Callable[..., User]) -> None:
    visitors = [user() for _ in range(3)]
    for visitor in visitors:
        visitor.visits()
    visitors.append(user())
    assert visitors[-1].visits() == 4
    for visitor in visitors[:-1]:
        visitor.leave()
        assert is_running(data_dir)
    visitors[-1].leave()
    assert not is_running(data_dir)


def test_the_server_outlives_its_killed_starter_while_others_use_it(
    data_dir: Path, user: Callable[..., User]
) -> None:
    starter = user()
    starter.visits()
    other = user()
    other.visits()
    starter.kill()
    assert is_running(data_dir)
    other.leave()
    assert not is_running(data_dir)


def test_the_server_stops_when_its_only_user_is_killed(data_dir: Path, user: Callable[..., User]) -> None:
    visitor = user()
    visitor.visits()
    visitor.kill()
    wait_until(lambda: not is_running(data_dir))
    assert user().visits() == 2


def test_a_killed_server_loses_nothing_and_hinders_no_start(
    data_dir: Path, user: Callable[..., User]
) -> None:
    visitor = user("durable")
    visitor.visits()
    pid = Cluster(data_dir, durable=False).postmaster_pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert user().visits() == 2


def test_a_dying_server_hinders_no_start(
    data_dir: Path, user: Callable[..., User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens still and takes no connection any more, and is gone when it was asked a third time."""
    visitor = user()
    visitor.visits()
    visitor.leave()
    monkeypatch.chdir(data_dir)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as dying:
        dying.settimeout(PATIENCE)
        dying.bind(f"postgres/{SOCKET_NAME}")
        dying.listen()
        following = user()
        for _ in range(3):
            dying.accept()[0].close()
    assert following.visits() == 2


@pytest.mark.parametrize("can_watch", [True, False])
def test_its_users_start_a_killed_server_again(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, can_watch: bool
) -> None:
    watch = os.pidfd_open
    if not can_watch:  # as in some containers
        monkeypatch.setattr(os, "pidfd_open", Mock(side_effect=PermissionError))
    cluster = Cluster(data_dir, durable=False)
    try:
        ensure_running(data_dir, durable=False)
        pid = cluster.postmaster_pid()
        ensure_running(data_dir, durable=False)
        assert cluster.postmaster_pid() == pid
        process = watch(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([process], [], [])  # its socket is closed a moment before it has ended
        os.close(process)
        with psycopg.connect(**ensure_running(data_dir, durable=False)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        release(data_dir)
    assert not is_running(data_dir)


def test_who_leaves_others_with_the_server_it_started_is_not_warned(
    data_dir: Path, user: Callable[..., User]
) -> None:
    ensure_running(data_dir, durable=False)
    user().visits()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        release(data_dir)
        gc.collect()
    assert told == []
    assert is_running(data_dir)


def test_a_process_that_got_the_old_servers_number_hinders_no_start(
    data_dir: Path, user: Callable[..., User]
) -> None:
    visitor = user()
    visitor.visits()
    files = [data_dir / "postgres" / name for name in ("postmaster.pid", f"{SOCKET_NAME}.lock")]
    left = {file: file.read_text().split("\n", 1)[1] for file in files}
    visitor.leave()
    for file, rest in left.items():
        file.write_text(f"{os.getpid()}\n{rest}")
    assert user().visits() == 2


def test_a_half_made_cluster_is_made_again(data_dir: Path, user: Callable[..., User]) -> None:
    (data_dir / "postgres.new.1" / "base").mkdir(parents=True)
    assert user().visits() == 1
    assert not list(data_dir.glob("postgres.new.*"))


@pytest.mark.parametrize("name", ["d" * 120, "with blank, comma and é"])
def test_the_data_directory_may_have_any_path(tmp_path: Path, name: str) -> None:
    visitor = User(tmp_path / name)
    try:
        assert visitor.visits() == 1
        visitor.leave()
    finally:
        visitor.kill()
    assert not is_running(tmp_path / name)


def test_data_of_another_version_are_refused(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "PG_VERSION").write_text("12\n")
    refused = subprocess.run(
        [sys.executable, "-c", USER, str(data_dir)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "made by PostgreSQL 12" in refused.stderr


def test_nothing_is_readable_by_others(data_dir: Path, user: Callable[..., User]) -> None:
    user().visits()
    assert data_dir.stat().st_mode & 0o066 == 0
    for kept in data_dir.iterdir():
        assert kept.stat().st_mode & 0o077 == 0, kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the account")
def test_as_root_the_folders_owner_runs_the_server_and_owns_the_data(tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    owned.mkdir()
    os.chown(owned, 65534, 65534)
    visitor = User(owned / "data")
    try:
        visitor.visits()
        made = [owned / "data", *(owned / "data").iterdir()]
        assert {path.stat().st_uid for path in made} == {65534}
        visitor.leave()
    finally:
        visitor.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the account")
def test_programs_in_a_closed_folder_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Account(name="nobody", uid=65534, gid=65534)
    wheel = programs.find_wheel_root()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        closed, copies = base / "closed", base / "copies"
        closed.mkdir(mode=0o700)
        (closed / wheel.parent.name).symlink_to(wheel.parent)
        (closed / f"{wheel.parent.name}.libs").symlink_to(wheel.parent.with_name(f"{wheel.parent.name}.libs"))
        monkeypatch.setattr(programs, "find_wheel_root", lambda: closed / wheel.parent.name / wheel.name)
        monkeypatch.setattr(programs, "COPIES", copies)
        copy = programs.find_runnable_root(nobody)
        assert copy.is_relative_to(copies)
        assert programs.find_runnable_root(nobody) == copy
        assert [path.name for path in copies.iterdir()] == [copy.parent.parent.name]
        assert closed.stat().st_mode & 0o777 == 0o700
