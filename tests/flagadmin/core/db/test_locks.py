"""Locks that outlast a transaction: one holder at a time, free again after a failure."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from flagadmin.core.db.transactions import Lock, hold, hold_if_free
from tests.support.live_server import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lock_has_one_holder() -> None:
    with hold_if_free(Lock.USER_RUNS) as first, hold_if_free(Lock.USER_RUNS) as second:
        assert (first, second) == (True, False)
    with hold_if_free(Lock.USER_RUNS) as free:
        assert free


def test_different_locks_do_not_wait_for_each_other() -> None:
    with hold(Lock.MIGRATION), hold_if_free(Lock.MAINTENANCE) as free:
        assert free


def test_whoever_needs_a_lock_waits_for_it() -> None:
    def wait() -> None:
        with hold(Lock.MIGRATION):
            pass

    def waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            return bool(cursor.fetchone()[0])

    with ThreadPoolExecutor(1) as threads:
        with hold(Lock.MIGRATION):
            waiter = threads.submit(wait)
            wait_until(waiting)
        waiter.result()


def test_a_lock_is_free_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), hold(Lock.MIGRATION):
        raise ZeroDivisionError
    with hold_if_free(Lock.MIGRATION) as free:
        assert free
