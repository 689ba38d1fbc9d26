"""The primary database is killed under load, and its synchronous standby promoted.

Nothing that was answered with success is lost, changes fail with 503 in between, and everything works again by itself.
"""

import http.client
import json
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.replication import PASSWORDS, replicated
from tests.support.serve import environment, serve, wait_until_it_answers

pytestmark = pytest.mark.processes

ADMIN, SDK = "*:*.0123456789abcdef-admin", "*:development.0123456789abcdef-sdk"
FLAG = "/api/admin/projects/default/features/checkout/environments/development"


class Load(threading.Thread):
    """Sends requests one after the other until it is told to stop, and keeps what was answered and when."""

    def __init__(self, port, secret, request):
        super().__init__(daemon=True)
        self.port, self.secret, self.request = port, secret, request
        self.answers = []
        self.stopped = threading.Event()

    def run(self):
        client, number = Client(self.port, self.secret, timeout=60), 0
        while not self.stopped.is_set():
            try:
                status, body = client.call(*self.request(number))
            except (OSError, http.client.HTTPException):
                client.close()
                client = Client(self.port, self.secret, timeout=60)
                status, body = None, b""
            self.answers.append((time.monotonic(), number, status, body))
            number += 1
            self.stopped.wait(0.02)
        client.close()

    def succeeded_after(self, moment):
        return sum(then > moment and status in (200, 202) for then, _, status, _ in list(self.answers))

    def refused_after(self, moment):
        return any(then > moment and status == 503 for then, _, status, _ in list(self.answers))


def toggle(number):
    return "POST", f"{FLAG}/{'on' if number % 2 else 'off'}"


def report(number):
    now = datetime.now(UTC).isoformat()
    bucket = {"start": now, "stop": now}
    body = {"appName": "load", "bucket": bucket | {"toggles": {"checkout": {"yes": 1, "no": 0}}}}
    return "POST", "/api/client/metrics", body


def imported(number):
    names = [f"imported-{number}-{part}" for part in range(20)]
    data = {"features": [{"name": name, "type": "release"} for name in names]}
    empty = (
        "featureStrategies",
        "featureEnvironments",
        "contextFields",
        "featureTags",
        "segments",
        "tagTypes",
    )
    data |= {name: [] for name in empty}
    body = {"project": "default", "environment": "development", "data": data}
    return "POST", "/api/admin/features-batch/import", body


def test_a_standby_takes_over_and_nothing_that_was_answered_is_lost(tmp_path):
    with replicated() as (primary, standby), reserved_port() as port:
        password = quote(PASSWORDS["application_password"])
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        variables = environment(
            tmp_path / "data",
            DATABASE_URL=f"postgresql://flagadmin:{password}@{hosts}/flagadmin?target_session_attrs=read-write",
            SECRET_KEY="the same on all machines",
            INIT_ADMIN_API_TOKENS=ADMIN,
            INIT_CLIENT_API_TOKENS=SDK,
            FLAGADMIN_DATABASE_SECONDS="1",
        )
        del variables["FLAGADMIN_DATA_DIR"]
        with serve(tmp_path / "data", port, **variables) as process:
            wait_until_it_answers(port, process)
            with closing(Client(port, ADMIN)) as admin:
                made = admin.call(
                    "POST", "/api/admin/projects/default/features", {"name": "checkout", "type": "release"}
                )
                assert made[0] == 201, made
            loads = [Load(port, ADMIN, toggle), Load(port, SDK, report), Load(port, ADMIN, imported)]
            for load in loads:
                load.start()
            wait_until(lambda: all(load.succeeded_after(0) > 10 for load in loads))

            primary.kill()
            killed = time.monotonic()
            wait_until(lambda: all(load.refused_after(killed) for load in loads))
            standby.run("promote.sql")
            promoted = time.monotonic()
            wait_until(lambda: all(load.succeeded_after(promoted) for load in loads))
            for load in loads:
                load.stopped.set()
                load.join(60)

            refusals = [
                json.loads(body) for load in loads for _, _, status, body in load.answers if status == 503
            ]
            assert {refusal["name"] for refusal in refusals} == {"ServiceUnavailableError"}

            _, reports, imports = loads
            accepted = sum(status == 202 for _, _, status, _ in reports.answers)
            counted = int(standby.ask("SELECT sum(yes) FROM projects_usagehour", "flagadmin"))
            assert accepted <= counted <= len(reports.answers)
            names = set(standby.ask("SELECT name FROM projects_flag", "flagadmin").split())
            for _, number, status, _ in imports.answers:
                there = {f"imported-{number}-{part}" for part in range(20)} & names
                assert len(there) in ((20,) if status == 200 else (0, 20)), (number, status)
