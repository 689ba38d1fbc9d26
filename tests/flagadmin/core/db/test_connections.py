"""Idle database connections are closed, and connection errors contain the server's message."""

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg_pool import ConnectionPool

from flagadmin import settings as own_settings
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


@pytest.mark.django_db
def test_a_refused_connection_is_told_in_the_servers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise psycopg.OperationalError('password authentication failed for user "flags"')

    monkeypatch.setattr(psycopg, "connect", refuse)
    with reserved_port() as port, pytest.raises(OperationalError, match="password authentication failed"):
        Command().handle(host="127.0.0.1", port=port, workers=1)
