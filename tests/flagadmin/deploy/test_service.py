"""deploy/flagadmin.service: systemd accepts it, and it may do little."""

import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.programs import program

pytestmark = pytest.mark.processes

LEAST_EXPOSED = 20  # tenths: what systemd calls OK ends at 4.0


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """With a program that exists here, as systemd looks for it."""
    text = (ROOT / "deploy" / "flagadmin.service").read_text()
    installed = "/opt/flagadmin/bin/flagadmin "
    assert text.count(installed) == 1
    copy = tmp_path / "flagadmin.service"
    copy.write_text(text.replace(installed, "/bin/true "))
    (tmp_path / "flagadmin.socket").write_text((ROOT / "deploy" / "flagadmin.socket").read_text())
    return copy


def analyze(*arguments: str | Path) -> tuple[int, str]:
    command = [program("systemd-analyze"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_systemd_accepts_it(unit: Path) -> None:
    assert analyze("verify", "--man=no", unit) == (0, "")


def test_systemd_accepts_its_socket(unit: Path) -> None:
    socket = unit.with_suffix(".socket")
    assert analyze("verify", "--man=no", socket) == (0, "")
    assert "ListenStream=127.0.0.1:8000" in socket.read_text()
    assert "--host 127.0.0.1 --port 8000" in (ROOT / "deploy" / "flagadmin.service").read_text()


def test_it_may_do_little(unit: Path) -> None:
    code, _ = analyze("security", "--offline=yes", f"--threshold={LEAST_EXPOSED}", "--no-pager", unit)
    assert code == 0
