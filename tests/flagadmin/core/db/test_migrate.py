"""The database is migrated while servers of the previous version use the database."""

import psycopg
import pytest
from django.db import OperationalError
from django.db.migrations.loader import MigrationLoader

from flagadmin.core.db import migrate


def failing(monkeypatch: pytest.MonkeyPatch, *failures: Exception) -> list[Exception]:
    """Makes the migration fail in these ways, then succeed. Returns those that are still to come."""
    left = list(failures)

    def fail_or_succeed(*args: object, **options: object) -> None:
        if left:
            raise OperationalError from left.pop(0)

    monkeypatch.setattr(migrate, "has_unapplied_migrations", lambda: True)
    monkeypatch.setattr(migrate, "call_command", fail_or_succeed)
    return left


@pytest.mark.django_db(transaction=True)
def test_a_deadlock_with_a_request_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, psycopg.errors.DeadlockDetected(), psycopg.errors.DeadlockDetected())
    migrate.migrate()
    assert not left


@pytest.mark.django_db(transaction=True)
def test_other_errors_and_endless_deadlocks_end_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, psycopg.errors.DiskFull(), psycopg.errors.DiskFull())
    with pytest.raises(OperationalError):
        migrate.migrate()
    assert len(left) == 1
    left = failing(monkeypatch, *[psycopg.errors.DeadlockDetected() for _ in range(20)])
    with pytest.raises(OperationalError):
        migrate.migrate()
    assert len(left) == 20 - migrate.MAX_ATTEMPTS


@pytest.mark.django_db(transaction=True)
def test_a_newer_database_is_not_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "read_newer_migrations", lambda: ["projects.9999_next"])
    with pytest.raises(migrate.NewerDatabaseError, match=r"projects\.9999_next"):
        migrate.migrate()


def test_the_names_of_files_are_those_of_all_migrations() -> None:
    assert migrate.list_migrations() == set(MigrationLoader(None).disk_migrations)
