"""One migrated database, kept in the bundled cluster, of which each worker of a test run gets a copy.

Migrating takes seconds, a copy a fraction of one. The name says what the database was made from, so a change of
a migration, of what is created after migrating, or of a dependency makes a new one.
"""

import fcntl
import hashlib
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from tests.support.paths import ROOT, sources

_PREFIX = "migrated_"
# Folders and modules; migrations import nothing else of ours, and after them only seeds create rows.
_MADE_FROM = {"migrations", "at_once", "models", "permissions", "seed", "strategy_types"}


def use_migrated_database(data_dir: Path) -> None:
    """The test database will be a copy of a migrated one, which is made if there is none."""
    name = _PREFIX + fingerprint()
    with (data_dir / "migrated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if name not in (names := _databases()):
            _execute(*(sql.SQL("DROP DATABASE {}").format(sql.Identifier(old)) for old in names))
            _make(name)
    connection.settings_dict["TEST"]["TEMPLATE"] = name


def fingerprint() -> str:
    """Of what a migrated database is made from."""
    digest = hashlib.sha256()
    for path in [*filter(_is_made_from, sources()), ROOT / "requirements" / "run.txt"]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _is_made_from(path: Path) -> bool:
    return not _MADE_FROM.isdisjoint(path.relative_to(ROOT).with_suffix("").parts)


def _databases() -> list[str]:
    with _server() as server:
        rows = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX])
        return [name for (name,) in rows]


def _make(name: str) -> None:
    own = settings.DATABASES["default"]["NAME"]
    migrated = connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # its connections keep the database from being renamed
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = own
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    _execute(rename.format(sql.Identifier(migrated), sql.Identifier(name)))


def _execute(*statements: sql.Composed) -> None:
    with _server() as server:
        for statement in statements:
            server.execute(statement)


def _server() -> psycopg.Connection:
    parameters = connection.get_connection_params()
    return psycopg.connect(
        host=parameters["host"], user=parameters["user"], dbname="postgres", autocommit=True
    )
