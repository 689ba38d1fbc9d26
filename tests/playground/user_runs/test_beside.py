"""Longer files are evaluated in a process beside the workers, which ends when its run is deleted."""

import json
from contextlib import closing
from typing import Any

import pytest

from tests.support.live_server import Client, wait_until
from tests.support.served import ADMIN, Served

pytestmark = pytest.mark.processes

URL = "/api/admin/playground/users"


def file(users: int) -> bytes:
    return b"userId\n" + b"".join(b"%d\n" % number for number in range(users))


def test_beside_the_workers(served: Served) -> None:
    served.flag("dark")
    with closing(Client(served.port, ADMIN)) as client:

        def got(path: str) -> Any:
            status, answer = client.call("GET", path)
            assert status == 200, answer
            return json.loads(answer)

        def sent(users: int) -> Any:
            csv = {"Content-Type": "text/csv"}
            status, answer = client.call("POST", f"{URL}?environment=production", file(users), **csv)
            assert status == 202, answer
            return json.loads(answer)

        long, short = sent(90_000), sent(20_001)
        assert (long["state"], short["state"]) == ("waiting", "waiting")
        wait_until(lambda: got(f"{URL}/{long['id']}")["usersDone"] > 0)
        assert client.call("DELETE", f"{URL}/{long['id']}")[0] == 204
        wait_until(lambda: got(f"{URL}/{short['id']}")["state"] == "done")
        status, result = client.call("GET", f"{URL}/{short['id']}/result")
        assert status == 200
        assert result.count(b"\r\n") == 20_002
        assert [run["id"] for run in got(URL)["runs"]] == [short["id"]]
