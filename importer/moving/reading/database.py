"""Reads data that Unleash's API hides from its database: in one read-only transaction, from one snapshot.

The shapes are rows of its tables.
"""

import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from pydantic import BaseModel

from importer.moving.reading.shapes import Shape, read_shape
from importer.moving.reading.source import SourceError

V = TypeVar("V", bound=BaseModel)
CONNECT_SECONDS = 10
STATEMENT_SECONDS = 600
MAX_ROWS = 1_000_000  # of a table that is read into memory


class SourceDatabase:
    """Tables by name. A missing table counts as empty, a missing column as NULL, unless it is required."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        query = """SELECT table_name, array_agg(column_name::text) AS columns
                     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
                    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' GROUP BY 1"""
        self._columns = {row["table_name"]: {*row["columns"]} for row in connection.execute(query)}
        if not {"users", "features", "events"} <= self._columns.keys():
            raise SourceError(f"{self.address}: is no database of Unleash: tables are missing.")

    @property
    def address(self) -> str:
        info = self.connection.info
        return f"database {info.dbname} at {info.host}"

    @property
    def tables(self) -> set[str]:
        return {*self._columns}

    def count(self, table: str, limit: int) -> int:
        """The number of rows, up to the limit."""
        query = sql.SQL("SELECT count(*) AS rows FROM (SELECT 1 FROM {} LIMIT {}) AS first")
        row = self.connection.execute(query.format(sql.Identifier(table), limit)).fetchone()
        return int(row["rows"]) if row else 0

    def has(self, table: str, *columns: str) -> bool:
        return {*columns} <= self._columns.get(table, set())

    def read(self, table: str, shape: type[V]) -> list[V]:
        """All rows. The shape's members are their columns."""
        present = self._columns.get(table)
        if present is None:
            return []
        names = [name for name in shape.model_fields if name in present]
        query = sql.SQL("SELECT {} FROM {} LIMIT {}").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table), MAX_ROWS + 1
        )
        rows = self.connection.execute(query).fetchall()
        if len(rows) > MAX_ROWS:
            raise SourceError(f"{self.address}: {table} has more than {MAX_ROWS:,} rows.")
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
        return read_shape(self.address, f", table {table}", rows, list[shape])  # type: ignore[valid-type]

    def stream(
        self, query: str, parameters: Mapping[str, Any] | Sequence[Any] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Any number of rows, only some of them in memory."""
        with self.connection.cursor("moving", row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.itersize = 5_000
            cursor.execute(query, parameters)
            yield from cursor


@contextmanager
def open_database(url: str) -> Iterator[SourceDatabase]:
    """Opens the database. Raises SourceError, whose message never contains the password."""
    try:
        connection = psycopg.connect(
            url,
            connect_timeout=CONNECT_SECONDS,
            application_name="flagadmin move",
            row_factory=dict_row,
        )
    except psycopg.OperationalError as error:
        raise SourceError(f"The database of --database cannot be reached: {first_line(error)}") from None
    except (psycopg.Error, UnicodeError):  # these errors quote the URL
        raise SourceError("--database is no URL like postgres://user:password@host/database.") from None
    try:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
        yield SourceDatabase(connection)
    except psycopg.Error as error:
        raise SourceError(f"The database of --database cannot be read: {first_line(error)}") from None
    finally:
        connection.close()


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:300]


_HEXADECIMAL = re.compile("[0-9a-fA-F]{64}")


class ProjectRow(Shape):
    id: str
    archived_at: datetime | None = None


class UserRow(Shape):
    id: int
    username: str | None = None
    name: str | None = None
    email: str | None = None
    password_hash: str | None = None
    seen_at: datetime | None = None
    deleted_at: datetime | None = None
    is_service: bool = False
    is_system: bool = False


class RoleRow(Shape):
    id: int
    name: str
    description: str = ""
    type: str


class RolePermissionRow(Shape):
    role_id: int
    permission: str | None = None
    environment: str | None = None


class HeldRole(Shape):
    """A role of a person or a group. ``project`` applies only to project roles."""

    role_id: int
    user_id: int = 0
    group_id: int = 0
    project: str = ""


class GroupRow(Shape):
    id: int
    name: str
    description: str = ""
    mappings_sso: Any = None
    root_role_id: int | None = None


class GroupUserRow(Shape):
    group_id: int
    user_id: int


class VerifiedRow(Shape):
    verifier: str | None = None

    @property
    def digest(self) -> str | None:
        """SHA-256 of the secret in hexadecimal, the form in which tokens are stored here."""
        text = self.verifier or ""
        if _HEXADECIMAL.fullmatch(text):
            return text.lower()
        try:
            raw = urlsafe_b64decode(f"{text}==")
        except (NotBase64, ValueError):
            return None
        return raw.hex() if len(raw) == 32 else None


class TokenRow(VerifiedRow):
    secret: str


class SelectedTokenRow(VerifiedRow):
    """A token of the new kind. Its secret contains the ``selector``: ``web:production.v2_SELECTOR_…``."""

    selector: str


class PersonalTokenRow(VerifiedRow):
    secret: str = ""
    user_id: int
    description: str = ""
    expires_at: datetime | None = None
    seen_at: datetime | None = None


class MilestoneSegmentRow(Shape):
    milestone_strategy_id: str
    segment_id: int


class FlagEnvironmentRow(Shape):
    environment: str
    feature_name: str
    variants: list[dict[str, Any]] = []


class FavoriteRow(Shape):
    user_id: int
    feature: str = ""
    project: str = ""


@dataclass(slots=True)
class Hidden:
    """Rows of an open database. Usage, dates and events are copied from it during writing."""

    database: SourceDatabase
    users: dict[int, UserRow]
    roles: dict[int, RoleRow]
    permissions: dict[int, list[RolePermissionRow]]
    held: list[HeldRole]
    """The roles of people and groups. Those in a project are of type ``project`` or ``custom``."""
    groups: list[GroupRow]
    members: dict[int, list[int]]
    personal_tokens: list[PersonalTokenRow]
    favorites: list[FavoriteRow]

    def find_root_role(self, user_id: int) -> int | None:
        ids = (held.role_id for held in self.held if held.user_id == user_id)
        roots = (key for key in ids if key in self.roles and self.roles[key].type in ("root", "root-custom"))
        return min(roots, default=None)
