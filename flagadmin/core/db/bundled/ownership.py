"""Creates the bundled server's application role, which is not a superuser, and makes it own the database.

In data directories of earlier versions, the superuser owns everything. The next start transfers ownership,
one transaction per database, so that a killed start changes nothing. The caller must hold the start lock.
"""

import psycopg
from psycopg import sql

from flagadmin.core.db.bundled.roles import APPLICATION, SUPERUSER

DATABASE = "flagadmin"
LOCK_SECONDS = 5  # to wait for a table that a process of an earlier version is using, before retrying

# CREATEDB: test runs create their own databases.
_CREATE_ROLE = f"CREATE ROLE {APPLICATION} LOGIN CREATEDB"
_DATABASES_TO_HAND_OVER = """
SELECT datname FROM pg_database
 WHERE datdba = %(superuser)s::regrole AND datallowconn AND NOT datistemplate
   AND datconnlimit >= -1 AND datname <> 'postgres'
"""
# Sequences of columns change owner with their table.
_STATEMENTS = """
SELECT format('ALTER TABLE %%s OWNER TO %%I', oid::regclass, %(application)s::text)
  FROM pg_class c
 WHERE relnamespace = 'public'::regnamespace AND relowner = %(superuser)s::regrole
   AND relkind IN ('r', 'p', 'v', 'm', 'S')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND (d.deptype = 'e' OR c.relkind = 'S' AND d.deptype IN ('a', 'i')))
 UNION ALL
SELECT format('ALTER ROUTINE %%s OWNER TO %%I', oid::regprocedure, %(application)s::text)
  FROM pg_proc p
 WHERE pronamespace = 'public'::regnamespace AND proowner = %(superuser)s::regrole
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                      AND d.deptype = 'e')
"""
_ROLES = {"superuser": SUPERUSER, "application": APPLICATION}


def prepare_databases(host: str) -> None:
    """Creates the application's role and database, and makes the role the owner of everything. Idempotent."""
    with _connect(host, "postgres", autocommit=True) as connection:
        databases = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
        if not databases.rowcount:
            connection.execute(f"CREATE DATABASE {DATABASE}")
    # Creates the role in the same transaction, so that a role that can log in already owns everything.
    _hand_over(host, DATABASE)
    with _connect(host, "postgres") as connection:
        others = connection.execute(_DATABASES_TO_HAND_OVER, _ROLES).fetchall()
    for (name,) in others:
        _hand_over(host, name)


def _hand_over(host: str, database: str) -> None:
    with _connect(host, database) as connection:
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [APPLICATION]).rowcount:
            connection.execute(_CREATE_ROLE)
        for (statement,) in connection.execute(_STATEMENTS, _ROLES).fetchall():
            connection.execute(statement)
        owned = sql.SQL("ALTER DATABASE {} OWNER TO {}")
        connection.execute(owned.format(sql.Identifier(database), sql.Identifier(APPLICATION)))


def _connect(host: str, database: str, *, autocommit: bool = False) -> psycopg.Connection:
    return psycopg.connect(
        host=host, user=SUPERUSER, dbname=database, autocommit=autocommit, connect_timeout=5
    )
