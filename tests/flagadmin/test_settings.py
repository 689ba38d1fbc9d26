"""Settings have safe defaults, and clear errors for missing or invalid environment variables."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from flagadmin.core.db.data_dir import make_data_dir, read_secret_key
from flagadmin.settings import _read_database
from tests.support.paths import ROOT
from tests.support.serve import environment

SHOW = """
import django
from django.conf import settings
django.setup()
print({name: getattr(settings, name) for name in ["DEBUG", "ALLOWED_HOSTS", "SECRET_KEY", "SESSION_COOKIE_SECURE"]})
"""


def run(data_dir: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(data_dir, DJANGO_SETTINGS_MODULE="flagadmin.settings", **more),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.processes
def test_safe_without_any_variable(tmp_path: Path) -> None:
    shown = run(tmp_path, "-c", SHOW)
    assert "'DEBUG': False" in shown.stdout, shown.stderr
    assert "'ALLOWED_HOSTS': ['127.0.0.1', 'localhost', '[::1]']" in shown.stdout


@pytest.mark.processes
def test_the_public_address_is_answered_to_and_makes_cookies_secure(tmp_path: Path) -> None:
    shown = run(tmp_path, "-c", SHOW, FLAGADMIN_PUBLIC_URL="https://flags.example.org/").stdout
    assert "'flags.example.org']" in shown
    assert "'SESSION_COOKIE_SECURE': True" in shown


@pytest.mark.processes
def test_the_generated_key_is_kept_and_nobody_else_reads_it(tmp_path: Path) -> None:
    first, second = (run(tmp_path, "-c", SHOW).stdout for _ in range(2))
    assert first == second
    kept = tmp_path / "secret_key"
    assert kept.read_text() in first
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret_key"]


def test_a_key_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("mine\n")
    assert read_secret_key(make_data_dir(tmp_path)) == "mine"


@pytest.mark.processes
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
    refused = run(tmp_path, "-c", SHOW, **variables)
    assert refused.returncode != 0
    assert complaint in refused.stderr


@pytest.mark.processes
def test_an_empty_secret_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    refused = run(tmp_path, "manage.py", "serve")
    assert refused.returncode != 0
    assert f"The secret key file {tmp_path}/secret_key is empty" in refused.stderr


@pytest.mark.processes
def test_an_unreadable_secret_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret_key").mkdir()  # root reads every file
    refused = run(tmp_path, "manage.py", "serve")
    assert refused.returncode != 0
    assert f"Is a directory: '{tmp_path}/secret_key'" in refused.stderr


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


@pytest.mark.processes
def test_the_deployment_check_is_clean_behind_https(tmp_path: Path) -> None:
    checked = run(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING", FLAGADMIN_HTTPS="1")
    assert checked.returncode == 0, checked.stderr


def test_a_database_url_is_what_libpq_takes():
    url = "postgresql://flags:p%40ss@one:5432,two:5433/flagadmin?target_session_attrs=read-write&sslmode=require"
    database = _read_database(url)
    shown = {name: database[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")}
    assert shown == {
        "USER": "flags",
        "PASSWORD": "p@ss",
        "HOST": "one,two",
        "PORT": "5432,5433",
        "NAME": "flagadmin",
    }
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert database["OPTIONS"]["sslmode"] == "require"
