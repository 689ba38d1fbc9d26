"""The command line: what it lists, what it refuses, and errors without a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from flagadmin import __version__, client
from flagadmin.command import GROUPS, REFUSED, SUPPORT, CommandLine
from flagadmin.settings import INSTALLED_APPS
from tests.support.paths import ROOT
from tests.support.serve import environment

OURS = ("flagadmin", "groups", "projects", "playground", "releases", "sdk", "importer", "integrations")


def run(data_dir: Path, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data_dir, **more),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def refuse(result: subprocess.CompletedProcess[str], message: str) -> bool:
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    return result.returncode == 1


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_version_is_flagadmins(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    CommandLine(["flagadmin", *arguments]).execute()
    assert capsys.readouterr().out == f"flagadmin {__version__}\n"


def test_help_lists_every_command_of_ours_and_none_that_is_refused() -> None:
    listed = CommandLine(["flagadmin"]).main_help_text(commands_only=True).split()
    commands = get_commands()
    assert {name for name, app in commands.items() if app in OURS} | {*client.NAMES} == set(listed) - set(
        SUPPORT
    )
    assert not set(listed) & set(REFUSED)
    assert set(REFUSED) <= set(commands), "refuses a command that does not exist"
    assert set(OURS) <= set(INSTALLED_APPS)


def test_help_has_a_sentence_for_each_command() -> None:
    text = CommandLine(["flagadmin"]).main_help_text()
    assert f"flagadmin {__version__}" in text
    assert "  backup                Write the bundled database to a file" in text
    for group in GROUPS:
        assert f"{group}:" in text


@pytest.mark.parametrize(
    ("path", "name"), [("/usr/bin/flagadmin", "flagadmin"), ("flagadmin/__main__.py", "python -m flagadmin")]
)
def test_help_names_the_program_that_was_started(path: str, name: str) -> None:
    assert f"Type '{name} help COMMAND'" in CommandLine([path]).main_help_text()


@pytest.mark.parametrize("name", REFUSED)
def test_commands_that_would_do_harm_are_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=f"flagadmin has no command {name}"):
        CommandLine(["flagadmin", name]).execute()


@pytest.mark.processes
@pytest.mark.parametrize(
    "arguments",
    [
        ["backup", "copy"],
        ["migrate"],
        ["shell", "-c", "from groups.models import User; User.objects.count()"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_database_is_created_where_there_is_no_installation(tmp_path: Path, arguments: list[str]) -> None:
    result = run(tmp_path / "data", *arguments)
    assert refuse(result, f"There is no installation in {tmp_path / 'data'}")
    assert not (tmp_path / "data" / "postgres").exists()
    assert not (ROOT / "copy").exists()


@pytest.mark.processes
def test_createadmin_sets_up_an_empty_directory(tmp_path: Path) -> None:
    result = run(tmp_path, "createadmin", "root", "--password-stdin", given="a sound passphrase\n")
    assert result.stdout == "root is an admin now. Log in at /login/.\n", result.stderr
    assert "/login/link/" in run(tmp_path, "login_link", "root").stdout


@pytest.mark.processes
@pytest.mark.parametrize("command", [["login_link", "root"], ["serve", "--port", "0"]], ids=" ".join)
def test_a_database_that_is_down_is_named_without_a_traceback(tmp_path: Path, command: list[str]) -> None:
    down = {
        "DATABASE_URL": "postgresql://127.0.0.1:1/flags",
        "SECRET_KEY": "x" * 50,
        "FLAGADMIN_DATABASE_SECONDS": "1",
    }
    assert refuse(run(tmp_path, *command, **down), "The database is not available: connection failed")


@pytest.mark.processes
def test_settings_that_do_not_fit_are_named_without_a_traceback(tmp_path: Path) -> None:
    without_key = run(tmp_path, "backup", "copy", DATABASE_URL="postgresql://127.0.0.1:1/flags")
    assert refuse(without_key, "DATABASE_URL is set, so SECRET_KEY must be set too")
    assert "Traceback" in run(tmp_path, "check", "--traceback", FLAGADMIN_THREADS="many").stderr
