"""Says why the database cannot be reached."""

import psycopg
from django.db import connection


def check_reachable() -> None:
    """Raises OperationalError with the reason, which the errors of a connection pool do not give."""
    with connection.wrap_database_errors, psycopg.connect(**connection.get_connection_params()):
        pass
