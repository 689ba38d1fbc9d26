"""A Django database backend that starts the bundled PostgreSQL server before connecting to it."""

from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base as postgresql
from django.db.backends.postgresql.client import DatabaseClient as PostgresClient

from flagadmin.core.db.bundled.server import (
    ConnectionParameters,
    EmbeddedServerError,
    ensure_running,
    find_tool,
)
from flagadmin.core.db.connections import PooledConnections


class DatabaseClient(PostgresClient):
    """`manage.py dbshell` with the bundled psql."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Any
    ) -> tuple[list[str], dict[str, str] | None]:
        server = start_server(settings_dict)
        database = settings_dict | {"HOST": server["host"], "USER": server["user"], "OPTIONS": {}}
        arguments, environment = super().settings_to_cmd_args_env(database, parameters)
        return [str(find_tool("psql")), *arguments[1:]], environment


class DatabaseWrapper(PooledConnections, postgresql.DatabaseWrapper):
    """OPTIONS accepts `data_dir` (a path) and `durable` (False in tests) in addition to psycopg's options."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        # Called for every connection, pooled or not, so that a killed server is restarted before anything
        # waits for it.
        server = start_server(self.settings_dict)
        parameters = super().get_connection_params()
        parameters.pop("data_dir")
        parameters.pop("durable", None)
        return parameters | {"host": server["host"], "user": server["user"]}


def start_server(settings_dict: dict[str, Any]) -> ConnectionParameters:
    """Starts the server of these database settings if it is not running.

    Raises OperationalError with the reason.
    """
    options = settings_dict["OPTIONS"]
    try:
        return ensure_running(Path(options["data_dir"]), durable=options.get("durable", True))
    except EmbeddedServerError as error:
        raise OperationalError(str(error)) from error
