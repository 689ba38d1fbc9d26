"""Django's PostgreSQL backend on the bundled server: it runs before the first connection is made."""

from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base as postgresql
from django.db.backends.postgresql.client import DatabaseClient as PostgresClient

from flagadmin.db.bundled.server import ConnectionParameters, EmbeddedServerError, ensure_running, tool_path


class DatabaseClient(PostgresClient):
    """`manage.py dbshell` with the bundled psql."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Any
    ) -> tuple[list[str], dict[str, str] | None]:
        server = server_of(settings_dict)
        there = settings_dict | {"HOST": server["host"], "USER": server["user"], "OPTIONS": {}}
        arguments, environment = super().settings_to_cmd_args_env(there, parameters)
        return [str(tool_path("psql")), *arguments[1:]], environment


class DatabaseWrapper(postgresql.DatabaseWrapper):
    """OPTIONS takes `data_dir` (a path) and `durable` (False for tests) beside psycopg's own."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        # Asked for with every use, pooled or not: a killed server is started again before anybody waits for it.
        server = server_of(self.settings_dict)
        parameters = super().get_connection_params()
        parameters.pop("data_dir")
        parameters.pop("durable", None)
        return parameters | {"host": server["host"], "user": server["user"]}


def server_of(settings_dict: dict[str, Any]) -> ConnectionParameters:
    """Make sure the server of these database settings runs; an OperationalError says why it does not."""
    options = settings_dict["OPTIONS"]
    try:
        return ensure_running(Path(options["data_dir"]), durable=options.get("durable", True))
    except EmbeddedServerError as error:
        raise OperationalError(str(error)) from error
