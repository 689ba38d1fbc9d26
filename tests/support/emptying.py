"""Puts rows back that were in the database before: the seeded ones after tests that commit, and the scenery before.

Django's `flush` truncates every table, which makes new files for each table and index, and seeds again: many
times as slow as this. Deleting skips triggers and foreign keys, which takes the bundled server's superuser. Its
connection stays open: a new one would read the catalog of all tables again, which takes longer than deleting.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import psycopg
from django.db import connection
from django.test import TransactionTestCase
from psycopg import sql

from flagadmin.core.db.bundled.programs import SUPERUSER

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'django_migrations'"
_COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""


@contextmanager
def quick_emptying() -> Iterator[None]:
    """Until the context ends, the rows that are in the database now are what each test begins with."""
    restore = keep_rows("seeded")
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]
    TransactionTestCase._fixture_teardown = lambda self: restore()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        TransactionTestCase._fixture_teardown = flush  # type: ignore[attr-defined]
        _superuser().close()


def keep_rows(schema: str, superuser: Callable[[], psycopg.Connection] | None = None) -> Callable[[], None]:
    """Copies the committed rows of each table to this schema. Returns what restores them, and deletes all others.

    ``superuser`` connects to the database: to that of the tests, unless told otherwise.
    """
    connect = superuser or _superuser
    deletions, insertions = [], []
    keeping = connect()
    with keeping.transaction():
        keeping.execute(
            sql.SQL("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}").format(sql.Identifier(schema))
        )
        for (name,) in keeping.execute(_TABLES).fetchall():
            table, copy = sql.Identifier("public", name), sql.Identifier(schema, name)
            deletions.append(sql.SQL("DELETE FROM {};").format(table))
            if not keeping.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(table)).rowcount:
                continue
            keeping.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(copy, table))
            names = keeping.execute(_COLUMNS, [f'public."{name}"'])
            columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in names)
            insertions.append(
                sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {};").format(
                    table, columns, columns, copy
                )
            )
    statements = sql.SQL("SET LOCAL session_replication_role = replica;") + sql.Composed(
        deletions + insertions
    )

    def restore() -> None:
        connection = connect()
        with connection.transaction():
            connection.execute(statements)

    return restore


@cache
def _superuser() -> psycopg.Connection:
    parameters = connection.get_connection_params()
    return psycopg.connect(
        host=parameters["host"], user=SUPERUSER, dbname=parameters["dbname"], autocommit=True
    )
