"""Django's backend for PostgreSQL, in which no commit waits for a lost standby for long (`core/db/standby.py`)."""

from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base as postgresql

from flagadmin.core.db.pooled import PooledConnections
from flagadmin.core.db.standby import (
    CommitInDoubt,
    CommitRefused,
    forget_canceled_wait,
    is_reading,
    keep_canceled_wait,
    standby,
    was_wait_canceled,
)

# NULL for a transaction that has written nothing. Its commit waits for nobody, as one that is to be stored here only.
_WOULD_WAIT = """
SELECT pg_current_xact_id_if_assigned() IS NOT NULL
   AND current_setting('synchronous_commit') NOT IN ('off', 'local')
"""


class DatabaseWrapper(PooledConnections, postgresql.DatabaseWrapper):
    """Raises CommitInDoubt or CommitRefused where nobody confirms what would be answered with success."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(_execute)

    def _configure_connection(self, connection: Any) -> Any:
        connection.add_notice_handler(keep_canceled_wait)
        return super()._configure_connection(connection)  # type: ignore[misc]

    def _commit(self) -> None:
        if standby.is_missing and self.connection is not None and self._would_wait():
            if not is_reading.get():
                raise CommitRefused
            self._ask("SELECT set_config('synchronous_commit', 'local', true)")
        forget_canceled_wait()
        super()._commit()  # type: ignore[misc]
        if was_wait_canceled():
            raise CommitInDoubt

    def _would_wait(self) -> bool:
        return bool(self._ask(_WOULD_WAIT))

    def _ask(self, statement: str) -> Any:
        """The one value that a statement returns. By psycopg, so that it counts for nobody as a query of the action."""
        with self.wrap_database_errors:
            return self.connection.execute(statement).fetchone()[0]


def _execute(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Executes a statement. Outside of a transaction, it commits automatically."""
    if context["connection"].in_atomic_block:
        return execute(sql, params, many, context)
    forget_canceled_wait()
    result = execute(sql, params, many, context)
    if was_wait_canceled():
        raise CommitInDoubt
    return result
