"""Nothing secret of ours is in the bundled server's process."""

from pathlib import Path

import pytest

from flagadmin.embedded.cluster import Cluster
from flagadmin.embedded.server import ensure_running, release


def test_the_server_does_not_inherit_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INIT_ADMIN_API_TOKENS", "*:*.not-for-the-database")
    monkeypatch.setenv("PGHOST", "somewhere")
    ensure_running(tmp_path, durable=False)
    try:
        pid = Cluster(tmp_path, durable=False).postmaster_pid()
        names = {
            line.partition("=")[0] for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if line
        }
    finally:
        release(tmp_path)
    assert names <= {"PATH", "LD_LIBRARY_PATH", "LC_ALL", "PG_GRANDPARENT_PID"}
