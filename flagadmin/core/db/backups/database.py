"""Inspects the database before it is backed up or replaced."""

from django.db import connection

from flagadmin.core.db.backups.errors import BackupError
from flagadmin.core.db.statements import fetch_row

OF_FLAGADMIN = {"django_migrations", "projects_flag", "groups_user", "audit_auditevent"}
MAX_NAMED_TABLES = 3


def check_installed() -> None:
    """Raises BackupError unless the database is that of an installation of flagadmin."""
    tables = _list_tables()
    if not tables >= OF_FLAGADMIN:
        raise BackupError(f"There is no flagadmin installation in {_name_database()}: {_describe(tables)}.")


def check_not_foreign() -> None:
    """Raises BackupError if the database has tables, but not those of flagadmin: a restore would drop them."""
    tables = _list_tables()
    if tables and not tables >= OF_FLAGADMIN:
        raise BackupError(
            f"The database {_name_database()} belongs to another application: {_describe(tables)}. "
            "Restore into an empty database."
        )


def check_direct() -> None:
    """Raises BackupError behind a pooler: settings that PostgreSQL's programs make would stay for other sessions."""
    # A pooler tells its clients process ids of its own.
    if fetch_row("SELECT pg_backend_pid()")[0] != connection.connection.info.backend_pid:
        raise BackupError(
            "DATABASE_URL leads to a connection pooler. For backups, give the URL of PostgreSQL itself."
        )


def holds_data() -> bool:
    """Whether the database has ever been used: every change creates an audit event."""
    tables = _list_tables()
    return any(
        fetch_row(f"SELECT EXISTS (SELECT FROM {table})")[0]  # noqa: S608 - constant names
        for table in ("audit_auditevent", "groups_user", "projects_flag")
        if table in tables
    )


def _list_tables() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor))


def _name_database() -> str:
    connection.ensure_connection()
    info = connection.connection.info
    return f"{info.dbname} at {info.host or 'this machine'}"


def _describe(tables: set[str]) -> str:
    if not tables:
        return "it has no tables"
    named = ", ".join(sorted(tables)[:MAX_NAMED_TABLES])
    return f"it has tables such as {named}" if len(tables) > MAX_NAMED_TABLES else f"its tables are {named}"
