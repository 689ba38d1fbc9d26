"""Connections from the pool that still are connected, found without asking the server."""

import select
from typing import Any

import psycopg


class PooledConnections:
    """A mixin for database backends. Replaces Django's health check, which is a statement in every request.

    A server that ends a connection closes it, which makes it readable. One that is no longer there at all would let the
    health check wait as long as the first query.
    """

    pool: Any

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        while True:
            connection = super().get_new_connection(conn_params)  # type: ignore[misc]
            if not self.pool or _is_connected(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # which replaces it


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
