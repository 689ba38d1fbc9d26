"""Connections for asyncio code, separate from Django's: outside its pool, with the same database settings."""

import asyncio
from typing import Any

import psycopg
from django.db import connections
from psycopg.rows import TupleRow

Connection = psycopg.AsyncConnection[TupleRow]


async def connect(alias: str, application_name: str) -> Connection:
    """A new connection in autocommit mode.

    Starts the bundled server if necessary, as every connection does. Raises django.db.OperationalError if that
    fails, psycopg.Error if the database does not accept the connection.
    """
    # In a thread, because starting the bundled server takes seconds.
    parameters = await asyncio.to_thread(_read_parameters, alias)
    parameters |= {"application_name": application_name, "cursor_factory": psycopg.AsyncCursor}
    return await psycopg.AsyncConnection.connect(**parameters, autocommit=True)


def _read_parameters(alias: str) -> dict[str, Any]:
    parameters: dict[str, Any] = connections[alias].get_connection_params()
    return parameters
