"""What background tasks of releases do with a change that cannot be made."""

import pytest
from django.db import ProgrammingError, transaction

from flagadmin.core.db.statements import execute
from flagadmin.core.errors import InvalidOperation
from releases.attempts import attempt

pytestmark = pytest.mark.django_db


def act_on(table: str) -> None:
    with transaction.atomic():
        execute(f"SELECT FROM {table}")


def test_a_missing_table_is_not_the_changes_fault():
    """It is tried again when the database is restored."""
    noted: list[str] = []
    with pytest.raises(ProgrammingError):
        attempt(lambda: act_on("nowhere"), noted.append)
    assert noted == []


def test_what_an_action_refuses_is_noted():
    def refuse() -> None:
        raise InvalidOperation("The flag is archived.")

    noted: list[str] = []
    assert attempt(refuse, noted.append)
    assert noted == ["The flag is archived."]


def test_another_error_is_noted_without_its_text(caplog: pytest.LogCaptureFixture):
    def fail() -> None:
        raise RuntimeError("a secret")

    noted: list[str] = []
    assert attempt(fail, noted.append)
    assert noted == ["An error that is described in the server's log."]
    assert "a secret" in caplog.text
