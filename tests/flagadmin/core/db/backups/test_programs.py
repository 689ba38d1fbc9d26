"""What a program of PostgreSQL's that failed has left behind."""

from pathlib import Path

import pytest

from flagadmin.core.db.backups import programs
from flagadmin.core.db.backups.programs import BackupError, running


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR:  no such table", "psql failed. Nothing was changed: ERROR:  no such table"),
        ("WARNING:  there is no transaction in progress", "a part of it was restored"),
    ],
)
def test_what_a_failed_program_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    psql = tmp_path / "psql"
    psql.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 3\n")
    psql.chmod(0o700)
    monkeypatch.setattr(programs, "find_tool", lambda name: tmp_path / name)
    with pytest.raises(BackupError, match=told), running("psql"):
        pass
