"""Single statements in SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

Parameters = Sequence[Any] | Mapping[str, Any] | None


def execute(statement: str, parameters: Parameters = None) -> int:
    """Returns the number of rows that it changed or read."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def fetch_rows(statement: str, parameters: Parameters = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def fetch_row(statement: str, parameters: Parameters = None) -> Any:
    """The first row, None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()
