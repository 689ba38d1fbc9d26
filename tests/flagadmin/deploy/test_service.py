"""The units of deploy/: systemd accepts them, and they may do little."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from django.core.management import load_command_class

from tests.support.paths import ROOT
from tests.support.programs import program

pytestmark = pytest.mark.processes

MAX_EXPOSURE = 20  # of 100; what systemd calls OK ends at 40
INSTALLED = "/opt/flagadmin/bin/flagadmin "
SERVICES = ("flagadmin.service", "flagadmin-backup.service")
RELAY = "flagadmin-relay.service"  # tests/relay/test_deploy.py has its options
UNITS = (*SERVICES, RELAY, "flagadmin-backup.timer")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The folder with all of them, with a program that exists here, as systemd looks for it."""
    for name in UNITS:
        text = (ROOT / "deploy" / name).read_text()
        assert text.count(INSTALLED) == (name in (*SERVICES, RELAY))
        (tmp_path / name).write_text(text.replace(INSTALLED, "/bin/true "))
    return tmp_path


def analyze(*arguments: str | Path) -> tuple[int, str]:
    command = [program("systemd-analyze"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_it(name: str, units: Path) -> None:
    assert analyze("verify", "--man=no", units / name) == (0, "")


@pytest.mark.parametrize("name", [*SERVICES, RELAY])
def test_it_may_do_little(name: str, units: Path) -> None:
    code, _ = analyze("security", "--offline=yes", f"--threshold={MAX_EXPOSURE}", "--no-pager", units / name)
    assert code == 0


@pytest.mark.parametrize("name", SERVICES)
def test_flagadmin_knows_its_command(name: str) -> None:
    command = setting(name, "ExecStart").removeprefix(INSTALLED)
    words = shlex.split(command)
    load_command_class("flagadmin", words[0]).create_parser("flagadmin", words[0]).parse_args(words[1:])


def test_backups_run_as_the_user_of_the_service_on_its_data() -> None:
    """Its user is named after the unit."""
    service, backup = SERVICES
    assert "User=" not in (ROOT / "deploy" / service).read_text().replace("DynamicUser=", "").replace(
        "PrivateUsers=", ""
    )
    assert setting(backup, "User") == Path(service).stem
    assert setting(service, "StateDirectory") in setting(backup, "StateDirectory").split()
    assert setting(backup, "EnvironmentFile") == setting(service, "EnvironmentFile")


def setting(name: str, key: str) -> str:
    values = re.findall(rf"^{key}=(.*)$", (ROOT / "deploy" / name).read_text(), re.MULTILINE)
    assert len(values) == 1, values
    return values[0]
