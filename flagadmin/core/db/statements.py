"""Rows of statements in SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection


def fetch_rows(
    statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()
