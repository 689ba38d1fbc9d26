"""Checks pooled connections of Django, and opens connections for asyncio code outside the pool."""

import asyncio
import select
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.postgresql.operations import DatabaseOperations
from psycopg.rows import TupleRow


class Operations(DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> str:
        """For Django's log. A prepared statement keeps its parameters apart, so that Django finds none."""
        return super().last_executed_query(cursor, sql, params) or f"{sql} -- {params}"


class PooledConnections:
    """A mixin for database backends that replaces Django's health check, which costs a statement in every request.

    A server that ends a connection closes it, which makes it readable. If the server has vanished, the health check
    would block as long as the first query does.
    """

    ops_class: Any = Operations
    pool: Any
    connection: Any

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        while True:
            connection = super().get_new_connection(conn_params)  # type: ignore[misc]
            if not self.pool or _is_connected(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # replaces it in the pool

    def _configure_connection(self, connection: psycopg.Connection) -> Any:
        if not is_pooler(connection):
            connection.prepare_threshold = 1  # executions before it
        super()._configure_connection(connection)  # type: ignore[misc]
        return True  # it has executed something: without a pool, Django ends the transaction

    def open_preparing(self) -> Any:
        """A cursor whose statements PostgreSQL plans once. The types of parameters must follow from the statement."""
        self.ensure_connection()  # type: ignore[attr-defined]
        return self._prepare_cursor(ServerBindingCursor(self.connection))  # type: ignore[attr-defined,call-arg]


def is_pooler(connection: psycopg.Connection) -> bool:
    """Whether a connection leads to a pooler, which gives its clients process ids of its own, and changing sessions."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


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
