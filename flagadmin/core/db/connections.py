"""Checks pooled connections of Django, and opens connections for asyncio code outside the pool."""

import asyncio
import select
from typing import Any

import psycopg
from django.db import connections
from psycopg.rows import TupleRow


class PooledConnections:
    """A mixin for database backends that replaces Django's health check, which costs a statement in every request.

    A server that ends a connection closes it, which makes it readable. If the server has vanished, the health check
    would block as long as the first query does.
    """

    pool: Any

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        while True:
            connection = super().get_new_connection(conn_params)  # type: ignore[misc]
            if not self.pool or _is_connected(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # replaces it in the pool


def _is_connected(connection: psycopg.Connection) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        connection.execute("")  # it may also be a notice
    except psycopg.Error:
        return False
    return True


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
