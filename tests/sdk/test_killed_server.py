"""A usage report that was answered is stored, even if server and database are killed right after."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.live_server import PATIENT, Client, running, started
from tests.support.sdk import registration

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

FILL = """
import http.client
import json
import django
django.setup()
from tests.support.cast import make_token
print(json.dumps([make_token("admin"), make_token("backend", environment="production")]))
"""

POSTS = 900  # at most; one list tells no more than 1,000


@pytest.fixture
def installation(tmp_path: Path, install: Callable[[Path], None]) -> dict[str, str]:
    install(tmp_path)
    return {
        "FLAGADMIN_DATA_DIR": str(tmp_path),
        "FLAGADMIN_DATABASE_DURABLE": "1",
        "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
    }


def test_what_was_answered_is_there_after_everything_was_killed(installation: dict[str, str]) -> None:
    variables = os.environ | PATIENT | installation
    filled = subprocess.run(
        [sys.executable, "-c", FILL], env=variables, capture_output=True, text=True, check=True
    )
    admin, backend = json.loads(filled.stdout.strip().splitlines()[-1])
    answered: list[str] = []
    with started(workers=1, **installation) as (port, group):
        posting = threading.Thread(target=post_until_refused, args=(port, backend, answered))
        posting.start()
        while len(answered) < 20 and posting.is_alive():
            time.sleep(0.01)
        kill_all(group, Path(installation["FLAGADMIN_DATA_DIR"]))
        posting.join()
    with running(workers=1, **installation) as port:
        with closing(Client(port, admin)) as client:
            status, body = client.call("GET", "/api/admin/metrics/applications")
        assert status == 200
    kept = {application["appName"] for application in json.loads(body)["applications"]}
    assert len(answered) >= 20
    assert set(answered) <= kept
    assert len(kept) - len(answered) <= 1  # the one that was not answered may be there or not


def post_until_refused(port: int, secret: str, answered: list[str]) -> None:
    with closing(Client(port, secret)) as client:
        for number in range(POSTS):
            name = f"app-{number}"
            try:
                status, _ = client.call("POST", "/api/client/register", registration(name))
            except (OSError, http.client.HTTPException):
                return
            if status != 202:
                return
            answered.append(name)


def kill_all(group: int, folder: Path) -> None:
    """The server with its workers, and the database it started; nobody outlives another to mend or stop anything."""
    postmaster = int((folder / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    os.killpg(group, signal.SIGSTOP)
    os.kill(postmaster, signal.SIGKILL)
    os.killpg(group, signal.SIGKILL)
