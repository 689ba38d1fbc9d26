"""Django's backend for PostgreSQL, whose commits do not wait long for a lost standby (`core/db/standby.py`)."""

from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base as postgresql

from flagadmin.core.db.connections import PooledConnections
from flagadmin.core.db.standby import (
    CommitInDoubt,
    CommitRefused,
    forget_canceled_wait,
    keep_canceled_wait,
    standby,
    was_wait_canceled,
)

# NULL for a transaction that has written nothing. Its commit does not wait, like one that is only stored locally.
_WOULD_WAIT = """
SELECT pg_current_xact_id_if_assigned() IS NOT NULL
   AND current_setting('synchronous_commit') NOT IN ('off', 'local')
"""


class DatabaseWrapper(PooledConnections, postgresql.DatabaseWrapper):
    """Raises CommitInDoubt or CommitRefused when no standby confirms a commit, instead of reporting success."""

    is_reading = False
    """Whether the current request only reads: its side notes are stored even without a standby."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(_execute)

    def _configure_connection(self, connection: Any) -> Any:
        connection.add_notice_handler(keep_canceled_wait)
        return super()._configure_connection(connection)

    def _commit(self) -> None:
        if standby.is_missing and self.connection is not None and self._would_wait():
            if not self.is_reading:
                raise CommitRefused
            self._ask("SELECT set_config('synchronous_commit', 'local', true)")
        forget_canceled_wait()
        super()._commit()  # type: ignore[misc]
        if was_wait_canceled():
            raise CommitInDoubt

    def _would_wait(self) -> bool:
        return bool(self._ask(_WOULD_WAIT))

    def _ask(self, statement: str) -> Any:
        """The single value that a statement returns. Uses psycopg, so that no count of queries includes it."""
        with self.wrap_database_errors:
            return self.connection.execute(statement).fetchone()[0]


def _execute(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Executes a statement. Outside a transaction, it commits automatically."""
    if context["connection"].in_atomic_block:
        return execute(sql, params, many, context)
    forget_canceled_wait()
    result = execute(sql, params, many, context)
    if was_wait_canceled():
        raise CommitInDoubt
    return result
