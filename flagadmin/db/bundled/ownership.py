"""The application's database belongs to the application's role, which is no superuser.

Data directories of earlier versions belong to the superuser in whole. They are handed over at the next start: each
database in one transaction, so that a start that is killed leaves it as it was. The caller holds the start lock.
"""

import psycopg
from psycopg import sql

from flagadmin.db.bundled.roles import APPLICATION, SUPERUSER

DATABASE = "flagadmin"
LOCK_SECONDS = 5  # for which a table may be in use by a process of an earlier version; then it is tried again

# CREATEDB: test runs make databases of their own.
_CREATE_ROLE = f"CREATE ROLE {APPLICATION} LOGIN CREATEDB"
_DATABASES_TO_HAND_OVER = """
SELECT datname FROM pg_database
 WHERE datdba = %(superuser)s::regrole AND datallowconn AND NOT datistemplate
   AND datconnlimit >= -1 AND datname <> 'postgres'
"""
# Sequences of a column follow their table.
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
    """Make the application's role and database, and give the role what is not yet its own. Can be repeated."""
    with _connect(host, "postgres", autocommit=True) as connection:
        there = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
        if not there.rowcount:
            connection.execute(f"CREATE DATABASE {DATABASE}")
    # The role comes to be together with its database: who can log in finds everything its own.
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
