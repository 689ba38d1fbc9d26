"""Lets the primary continue without its synchronous standby after a long silence, and requires it again later.

It has the effect of alone.sql and synchronous.sql in deploy/postgresql. It stores nothing: after a restart, or on
another primary after a promotion, it first listens to the standby for the full period.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

log = logging.getLogger("flagadmin.standby")

STANDBY = "flagadmin_standby"  # its application_name, as in deploy/postgresql/standby.sh
NAME = "flagadmin standby watch"
LOOK = 1.0  # seconds

# Returns another value each time the standby, while following, reports that it is alive.
_LOOK = """
SELECT current_setting('synchronous_standby_names'),
       (SELECT string_agg(concat(pid, ' ', reply_time), ' ' ORDER BY pid)
          FROM pg_stat_replication WHERE application_name = %s AND state = 'streaming')
"""


class StandbyWatch:
    """A watch on the standby over one connection to the primary. ``now`` is a monotonic clock."""

    def __init__(
        self, connection: psycopg.Connection[Any], seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection, self._seconds, self._now = connection, seconds, now
        self._sign: str | None = None  # the last sign of life
        self._heard_at = now()

    def look(self) -> None:
        row = self._connection.execute(_LOOK, [STANDBY]).fetchone()
        assert row is not None
        names, sign = row
        if self._is_alive(sign):
            if not names:
                self._require(STANDBY)
                log.warning("The standby follows: commits wait for it again")
        elif names and (silent := self._now() - self._heard_at) > self._seconds:
            self._require("")
            log.error("No sign of the standby for %.0f s: the primary continues alone", silent)

    def _is_alive(self, sign: str | None) -> bool:
        """Whether the standby has reported since the last look."""
        is_new = sign is not None and self._sign is not None and sign != self._sign
        self._sign = sign
        if is_new:
            self._heard_at = self._now()
        return is_new

    def _require(self, names: str) -> None:
        statement = sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(sql.Literal(names))
        self._connection.execute(statement)
        self._connection.execute("SELECT pg_reload_conf()")


def watch(url: str, seconds: float, **options: Any) -> None:
    """Watches until it is killed, and reconnects automatically. ``options`` are libpq's.

    Raises psycopg.errors.InsufficientPrivilege if the role lacks the permission.
    """
    while True:
        try:
            with psycopg.connect(url, autocommit=True, application_name=NAME, **options) as connection:
                log.info("Watching the standby of %s", connection.info.host)
                standby = StandbyWatch(connection, seconds)
                while True:
                    standby.look()
                    time.sleep(LOOK)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            log.warning("The standby is not watched: %s", str(error).strip())
        time.sleep(LOOK)
