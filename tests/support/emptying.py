"""Empties the database after tests that commit: deletes what there is and puts the seeded rows back.

Django's `flush` truncates every table, which makes new files for each table and index, and seeds again: many
times as slow as this. Deleting skips triggers and foreign keys, which takes the bundled server's superuser.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection
from django.test import TransactionTestCase
from psycopg import sql

from flagadmin.db.bundled.roles import SUPERUSER

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'django_migrations'"
_COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""


@contextmanager
def quick_emptying() -> Iterator[None]:
    """Until the context ends, the rows that are in the database now are what each test begins with."""
    statements = _kept()
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def restore(self: TransactionTestCase) -> None:
        with _superuser() as restoring:
            restoring.execute(statements)

    TransactionTestCase._fixture_teardown = restore  # type: ignore[attr-defined]
    try:
        yield
    finally:
        TransactionTestCase._fixture_teardown = flush  # type: ignore[attr-defined]


def _kept() -> sql.Composed:
    """Copies the rows of each table to a schema of their own. Returns the statements that restore them."""
    deletions, insertions = [], []
    with _superuser() as keeping:
        keeping.execute("DROP SCHEMA IF EXISTS seeded CASCADE")
        keeping.execute("CREATE SCHEMA seeded")
        for (name,) in keeping.execute(_TABLES).fetchall():
            table, copy = sql.Identifier("public", name), sql.Identifier("seeded", name)
            deletions.append(sql.SQL("DELETE FROM {};").format(table))
            if not keeping.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(table)).rowcount:
                continue
            keeping.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(copy, table))
            found = keeping.execute(_COLUMNS, [f'public."{name}"'])
            columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in found)
            insertions.append(
                sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {};").format(
                    table, columns, columns, copy
                )
            )
    return sql.SQL("SET LOCAL session_replication_role = replica;") + sql.Composed(deletions + insertions)


def _superuser() -> psycopg.Connection:
    given = connection.get_connection_params()
    return psycopg.connect(host=given["host"], user=SUPERUSER, dbname=given["dbname"])
