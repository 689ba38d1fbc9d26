"""`manage.py createadmin` creates the first account from a shell."""

import io

import pytest
from django.core.management import CommandError, call_command

from flagadmin.core.audit.models import AuditEvent
from groups.models import User
from groups.permissions import BuiltIn

PASSWORD = "a sound passphrase"


@pytest.fixture(autouse=True)
def _typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\nmore\n"))


@pytest.mark.django_db
def test_makes_an_admin_who_can_log_in() -> None:
    call_command("createadmin", "root", "--email", "root@flags.example", "--password-stdin")
    admin = User.objects.get(username="root")
    assert (admin.root_role_id, admin.email) == (BuiltIn.ADMIN, "root@flags.example")
    assert admin.check_password(PASSWORD)
    assert AuditEvent.objects.filter(type="user-created", subject="root").exists()


@pytest.mark.django_db
def test_refuses_a_name_that_is_taken() -> None:
    User.objects.create(username="Root")
    with pytest.raises(CommandError, match="An account named root already exists"):
        call_command("createadmin", "root", "--password-stdin")


@pytest.mark.django_db
def test_refuses_a_weak_password_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("123\n"))
    with pytest.raises(CommandError, match="too short"):
        call_command("createadmin", "root", "--password-stdin")
    assert not User.objects.exists()


def test_takes_no_password_from_where_nobody_types() -> None:
    with pytest.raises(CommandError, match="--password-stdin"):
        call_command("createadmin", "root")
