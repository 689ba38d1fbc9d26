"""Settings have safe defaults, and clear errors for missing or invalid environment variables."""

import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from flagadmin.core.db.data_dir import make_data_dir, read_secret_key
from flagadmin.core.env import database
from flagadmin.management.commands.serve import check_secret_key
from tests.support.paths import ROOT
from tests.support.serve import environment


def read_settings(data_dir: Path, **variables: str) -> dict[str, Any]:
    """What a process with these variables reads; tests/flagadmin/test_command.py shows what commands do with errors."""
    with mock.patch.dict(os.environ, environment(data_dir, **variables), clear=True):
        return runpy.run_path(str(ROOT / "flagadmin" / "settings.py"))


def test_safe_without_any_variable(tmp_path: Path) -> None:
    settings = read_settings(tmp_path)
    assert settings["DEBUG"] is False
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1", "localhost", "[::1]"]


def test_the_public_address_is_answered_to_and_makes_cookies_secure(tmp_path: Path) -> None:
    settings = read_settings(tmp_path, FLAGADMIN_PUBLIC_URL="https://flags.example.org/")
    assert settings["ALLOWED_HOSTS"][-1] == "flags.example.org"
    assert settings["SESSION_COOKIE_SECURE"] is True


def test_the_generated_key_is_kept_and_nobody_else_reads_it(tmp_path: Path) -> None:
    first, second = (read_settings(tmp_path)["SECRET_KEY"] for _ in range(2))
    kept = tmp_path / "secret_key"
    assert first == second == kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret_key"]


def test_a_key_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("mine\n")
    assert read_secret_key(make_data_dir(tmp_path)) == "mine"


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"DATABASE_URL": "postgresql://here/flags"}, "SECRET_KEY must be set too"),
        ({"DATABASE_URL": "sqlite:///flags.db", "SECRET_KEY": "k"}, "no other database works"),
        ({"DATABASE_URL": "nonsense://x", "SECRET_KEY": "k"}, "The database URL"),
        (
            {"DATABASE_URL": "postgresql://h/d?nosuch=1", "SECRET_KEY": "k"},
            'invalid URI query parameter: "nosuch"',
        ),
        ({"FLAGADMIN_DEBUG": "maybe"}, "FLAGADMIN_DEBUG must be 1 or 0, not 'maybe'"),
        ({"FLAGADMIN_PUBLIC_URL": "flags.example.org"}, "like https://"),
        ({"FLAGADMIN_BODY_LIMIT": "1MB"}, "FLAGADMIN_BODY_LIMIT must be a whole number, not '1MB'"),
        ({"FLAGADMIN_PLAYGROUND_MAX_EVALUATIONS": "0"}, "must be at least 1"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variables: dict[str, str], complaint: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=re.escape(complaint)):
        read_settings(tmp_path, **variables)


def test_an_empty_secret_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    with pytest.raises(ImproperlyConfigured, match=f"The secret key file {tmp_path}/secret_key is empty"):
        read_settings(tmp_path)


def test_serve_refuses_a_short_secret_key() -> None:
    check_secret_key("k" * 32)
    with pytest.raises(CommandError, match="SECRET_KEY has 31 characters, but needs at least 32"):
        check_secret_key("k" * 31)


def test_an_unreadable_secret_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret_key").mkdir()  # root reads every file
    with pytest.raises(ImproperlyConfigured, match=f"Is a directory: '{tmp_path}/secret_key'"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("flags", "owner", "reason"),
    [
        (os.ST_RDONLY, 0, "is on a read-only file system"),
        (0, 1, "belongs to another user"),
        (0, 0, "Change its mode to 0700"),
    ],
)
def test_why_the_data_directory_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, owner: int, reason: str
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + owner)
    with pytest.raises(PermissionError, match=reason):
        make_data_dir(tmp_path)


def test_a_database_url_is_what_libpq_takes():
    url = "postgresql://flags:p%40ss@one:5432,two:5433/flagadmin?target_session_attrs=read-write&sslmode=require"
    read = database(url, {})
    shown = {name: read[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")}
    assert shown == {
        "USER": "flags",
        "PASSWORD": "p@ss",
        "HOST": "one,two",
        "PORT": "5432,5433",
        "NAME": "flagadmin",
    }
    assert read["OPTIONS"]["target_session_attrs"] == "read-write"
    assert read["OPTIONS"]["sslmode"] == "require"
