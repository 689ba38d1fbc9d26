"""Longer files are evaluated in a process beside the workers, which ends when its run is deleted."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import Client, running, wait_until

pytestmark = pytest.mark.processes

URL = "/api/admin/playground/users"
KEY = "*:*." + "5ec2e7" * 9 + "00"
FLAGS = "/api/admin/projects/default/features"


def file(users: int) -> bytes:
    return b"userId\n" + b"".join(b"%d\n" % number for number in range(users))


def test_beside_the_workers(tmp_path: Path, install: Any) -> None:
    install(tmp_path)
    settings = {"FLAGADMIN_DATA_DIR": str(tmp_path), "FLAGADMIN_DATABASE_DURABLE": "0"}
    settings |= {"INIT_ADMIN_API_TOKENS": KEY, "DJANGO_SETTINGS_MODULE": "flagadmin.settings"}
    with running(workers=1, **settings) as port, closing(Client(port, KEY)) as client:

        def got(path: str) -> Any:
            status, answer = client.call("GET", path)
            assert status == 200, answer
            return json.loads(answer)

        def sent(users: int) -> Any:
            csv = {"Content-Type": "text/csv"}
            status, answer = client.call("POST", f"{URL}?environment=production", file(users), **csv)
            assert status == 202, answer
            return json.loads(answer)

        assert client.call("POST", FLAGS, {"name": "dark"})[0] == 201
        long, short = sent(90_000), sent(20_001)
        assert (long["state"], short["state"]) == ("waiting", "waiting")
        wait_until(lambda: got(f"{URL}/{long['id']}")["usersDone"] > 0)
        assert client.call("DELETE", f"{URL}/{long['id']}")[0] == 204
        wait_until(lambda: got(f"{URL}/{short['id']}")["state"] == "done")
        status, result = client.call("GET", f"{URL}/{short['id']}/result")
        assert status == 200
        assert result.count(b"\r\n") == 20_002
        assert [run["id"] for run in got(URL)["runs"]] == [short["id"]]
        # The server stops while another one is evaluated.
        last = sent(90_000)
        wait_until(lambda: got(f"{URL}/{last['id']}")["state"] != "waiting")
