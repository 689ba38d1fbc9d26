"""What a failed program of PostgreSQL's has left behind."""

import pytest

from flagadmin.db.backups.errors import BackupError
from flagadmin.db.backups.programs import running


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR:  no such table", "Nothing was changed: ERROR:  no such table"),
        ("WARNING:  there is no transaction in progress", "a part of it was restored"),
    ],
)
def test_what_a_failed_program_changed(said: str, told: str) -> None:
    with pytest.raises(BackupError, match=told), running(["sh", "-c", f"echo '{said}' >&2; exit 3"]):
        pass
