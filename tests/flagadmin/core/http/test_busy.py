"""A server whose database connections are all in use says so, and does not blame the database."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection
from psycopg_pool import ConnectionPool

from flagadmin.core.db.outages import reach
from flagadmin.core.errors import Busy, ServiceUnavailable
from flagadmin.core.http.error_responses import as_app_error
from flagadmin.core.http.health import BUSY

pytestmark = pytest.mark.django_db


@pytest.fixture
def refused() -> Iterator[OperationalError]:
    """The error of a request that got no connection of a pool."""
    settings = connection.get_connection_params()
    settings.pop("pool", None)
    with (
        ConnectionPool(kwargs=settings, min_size=1, max_size=1, open=True) as pool,
        pool.connection(),
        pytest.raises(OperationalError) as error,
        connection.wrap_database_errors,
    ):
        pool.getconn(timeout=0.01)
    yield error.value
    reach.forget()


def test_busy_while_the_database_answers(refused: OperationalError) -> None:
    reach.note_reached()
    before = BUSY._value.get()
    error = as_app_error(refused)
    assert BUSY._value.get() == before + 1
    assert type(error) is Busy
    assert error.status == 503
    assert error.headers["Retry-After"] == "1"
    assert "busy" in error.message


def test_no_connection_in_an_outage(refused: OperationalError) -> None:
    assert type(as_app_error(refused)) is ServiceUnavailable  # nothing has reached the database yet
    reach.note_reached()
    reach.note_lost()
    assert type(as_app_error(refused)) is ServiceUnavailable


def test_other_failures_are_not_busy() -> None:
    reach.note_reached()
    assert type(as_app_error(OperationalError("server closed the connection"))) is ServiceUnavailable
    reach.forget()
