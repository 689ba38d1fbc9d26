"""Idle database connections are closed, and connection errors contain the server's message."""

from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg_pool import ConnectionPool

from flagadmin import settings as own_settings
from flagadmin.core.db import connections
from flagadmin.core.db.statements import fetch_rows
from flagadmin.management.commands.serve import Command
from tests.support.live_server import reserved_port, wait_until


@pytest.mark.django_db
def test_idle_connections_are_closed() -> None:
    parameters = connection.get_connection_params()
    given = own_settings._POOL
    with ConnectionPool(kwargs=parameters, open=True, **given) as pool:
        taken = [pool.getconn() for _ in range(4)]
        for one in taken:
            pool.putconn(one)
        wait_until(lambda: pool.get_stats()["pool_size"] == given["min_size"])


@pytest.mark.django_db(transaction=True)
def test_a_connection_of_the_pool_that_the_server_has_closed_is_replaced() -> None:
    pooled: Any = connection.copy(alias="pooled")
    pooled.settings_dict["OPTIONS"]["pool"] = own_settings._POOL | {"max_size": 1}
    try:
        before = _backend(pooled)
        pooled.close()  # gives it back
        assert _backend(pooled) == before
        pooled.close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [before])
        assert _backend(pooled) != before
    finally:
        pooled.close()
        pooled.close_pool()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pooler", [False, True])
def test_a_kept_plan_outlives_a_migration_and_is_not_made_behind_a_pooler(
    monkeypatch: pytest.MonkeyPatch, pooler: bool
) -> None:
    monkeypatch.setattr(connections, "is_pooler", lambda connection: pooler)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]

    def ask() -> list[tuple[Any, ...]]:
        return fetch_rows("SELECT number FROM plans WHERE number = %s", [1], prepared=True)

    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("CREATE TABLE plans AS SELECT 1 AS number")
        try:
            assert [ask() for _ in range(3)] == [[(1,)]] * 3
            assert fetch_rows("SELECT count(*) FROM pg_prepared_statements") == [(int(not pooler),)]
            other.execute("ALTER TABLE plans ALTER number TYPE bigint")
            assert ask() == [(1,)]
        finally:
            other.execute("DROP TABLE plans")
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]


def _backend(database: BaseDatabaseWrapper) -> int:
    """The server's process for this connection."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
        return int(pid)


@pytest.mark.django_db
def test_a_refused_connection_is_told_in_the_servers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise psycopg.OperationalError('password authentication failed for user "flags"')

    monkeypatch.setattr(psycopg, "connect", refuse)
    with reserved_port() as port, pytest.raises(OperationalError, match="password authentication failed"):
        Command().handle(host="127.0.0.1", port=port, workers=1)
