"""``manage.py assignments``: large tables, read and answered in parts."""

import gzip
from datetime import timedelta
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from flagadmin.core.http.responses import iso
from playground.management.commands import assignments
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db


@pytest.fixture
def times(shop: Any) -> list[str]:
    """A moment without the flag, and one after it was made."""
    before = timezone.now() - timedelta(hours=1)
    live_flag("f")
    return [iso(before), iso(timezone.now())]


def run(name: Path | str, *arguments: str) -> tuple[list[str], list[str]]:
    """The lines on standard output, and on standard error."""
    out, err = StringIO(), StringIO()
    call_command(
        "assignments", str(name), *arguments, environment="production", flag=["f"], stdout=out, stderr=err
    )
    return out.getvalue().splitlines(), err.getvalue().splitlines()


def test_in_parts(times: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "CHUNK", 2)
    file = tmp_path / "orders.csv.gz"
    rows = "".join(f"{n},{times[n % 2]}\n" for n in range(5))
    file.write_bytes(gzip.compress(f"userId,time\n{rows}".encode()))
    out, err = run(file, "--lag", "0")
    assert out[0] == "userId,time,result,variant,since,change,lacks"
    assert [line.split(",")[0] + line.split(",")[2] for line in out[1:]] == [
        "0off", "1on", "2off", "3on", "4off"
    ]  # fmt: skip
    assert err == ["2 rows", "4 rows", "5 rows", "f: 2 on, 3 off."]


def test_standard_input(times: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(f'{{"time": "{times[0]}"}}\n'.encode())))
    assert len(run("-")[0]) == 2


def test_a_change_outside_flagadmin_has_no_event(times: list[str], tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text(f"time\n{times[1]}\n")
    [_, line], _ = run(file, "--lag", "0")
    cells = line.split(",")
    assert (cells[1], cells[4]) == ("on", "")
    assert cells[3] <= times[1]


def test_refused(times: list[str], tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    with pytest.raises(CommandError, match=r"Cannot read .*orders\.csv: No such file"):
        run(file)
    file.write_text("time\nsoon\n")
    with pytest.raises(CommandError, match="row 2, column time: must be a time"):
        run(file)
    with pytest.raises(CommandError, match=r"flag\[0\]: flag g not found"):
        call_command("assignments", str(file), environment="development", flag=["g"])
