"""Backups go from the bundled database to every supported version of PostgreSQL and back, with no client installed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flagadmin.core.db.bundled import server as bundled
from tests.support.backups import RELEASED, held, manage, refuse, url
from tests.support.postgresql_versions import SUPPORTED, programs_of
from tests.support.programs import program
from tests.support.replication import ONE_SERVER, Server, one_server, servers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

FOREIGN = "CREATE TABLE shop_order (id int); INSERT INTO shop_order VALUES (1);"


@pytest.fixture(scope="module")
def bundled_backup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A backup of a bundled database, and what it holds."""
    folder = tmp_path_factory.mktemp("bundled")
    try:
        held(manage(folder / "data", "restore", RELEASED))
        yield folder / "backup", held(manage(folder / "data", "backup", folder / "backup"))
    finally:
        bundled.release(folder / "data")


@pytest.mark.parametrize("version", SUPPORTED)
def test_from_the_bundled_database_to_another_version_and_back(
    version: int, bundled_backup: tuple[Path, str], tmp_path: Path
) -> None:
    file, holds = bundled_backup
    check = ["--check"] if version == SUPPORTED[0] else []  # restores it in a bundled database
    with one_server(programs_of(version)) as server:
        there = {"DATABASE_URL": url(server)}
        assert held(manage(tmp_path, "restore", file, **there)) == holds
        assert held(manage(tmp_path, "backup", tmp_path / "again", *check, **there)) == holds
        assert held(manage(tmp_path, "restore", tmp_path / "again", "--force", **there)) == holds


def test_backups_go_over_tls(bundled_backup: tuple[Path, str], tmp_path: Path) -> None:
    """The bundled programs have none of their own."""
    file, holds = bundled_backup
    with servers(1, programs_of(15)) as [server]:
        server.initialize("hostssl all all 127.0.0.1/32 trust\n", "ssl = on\n")
        certificate = create_certificate(server)
        server.start()
        for statement in ONE_SERVER.strip().splitlines():
            server.ask(statement)
        there = {"DATABASE_URL": url(server, f"?sslmode=verify-full&sslrootcert={certificate}")}
        assert held(manage(tmp_path, "restore", file, **there)) == holds
        assert held(manage(tmp_path, "backup", tmp_path / "again", **there)) == holds


def create_certificate(server: Server) -> Path:
    names = ("server.key", "server.crt")
    key, certificate = (server.folder / name for name in names)
    command = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=db", "-days", "1"]
    where = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([program("openssl"), *command, *where], check=True, capture_output=True)
    server.own(key, certificate)
    return certificate


def test_where_there_is_no_installation(bundled_backup: tuple[Path, str], tmp_path: Path) -> None:
    with one_server() as server:
        there = {"DATABASE_URL": url(server)}
        backup = manage(tmp_path, "backup", tmp_path / "file", **there)
        refuse(backup, "There is no flagadmin installation in flagadmin at 127.0.0.1: it has no tables")
        assert not (tmp_path / "file").exists()
        refuse(manage(tmp_path, "restore", "--recovered", **there), "There is no flagadmin installation")

        server.ask(FOREIGN, "flagadmin")
        backup = manage(tmp_path, "backup", tmp_path / "file", **there)
        refuse(
            backup, "There is no flagadmin installation in flagadmin at 127.0.0.1: its tables are shop_order"
        )
        restore = manage(tmp_path, "restore", bundled_backup[0], "--force", **there)
        refuse(restore, "belongs to another application: its tables are shop_order. Restore into an empty")
        assert server.ask("SELECT count(*) FROM shop_order", "flagadmin") == "1"


def test_an_incomplete_backup_changes_nothing(bundled_backup: tuple[Path, str], tmp_path: Path) -> None:
    file, holds = bundled_backup
    whole = file.read_bytes()
    cut, less = tmp_path / "cut", tmp_path / "less"
    cut.write_bytes(whole[: len(whole) // 2])
    less.write_bytes(whole.replace(b'"people": 6', b'"people": 7'))
    with one_server() as server:
        there = {"DATABASE_URL": url(server)}
        refuse(manage(tmp_path, "restore", cut, **there), "pg_restore failed. Nothing was changed: ")
        promised = holds.replace("people 6", "people 7")
        for check in ([], ["--check"]):
            refuse(
                manage(tmp_path, "restore", less, *check, **there),
                f"the backup is incomplete: it should hold {promised}",
            )
        assert server.ask("SELECT count(*) FROM pg_stat_user_tables", "flagadmin") == "0"
