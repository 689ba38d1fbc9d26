"""While the database is away, a worker answers what SDKs read as before, and nothing else; then all is as it was."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.event_stream import Listener
from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.load import ADMIN, FLAG, SDK, TOKENS, report_body
from tests.support.replication import Server, migrated_server
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

FRONTEND = "*:development.0123456789abcdef-frontend"
METRICS = "0123456789abcdef"
FEATURES, DELTA = "/api/client/features", "/api/client/delta"
READS: dict[str, tuple[str, str, str, Any]] = {
    "features": (SDK, "GET", FEATURES, None),
    "features of a prefix": (SDK, "GET", f"{FEATURES}?namePrefix=check", None),
    "delta": (SDK, "GET", DELTA, None),
    "frontend": (FRONTEND, "GET", "/api/frontend?userId=7", None),
    "OFREP": (SDK, "POST", "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": "7"}}),
}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Installation:
    port: int
    database: Server

    def ask(self, secret: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        with closing(Client(self.port)) as client:
            data = None if body is None else json.dumps(body).encode()
            sent = {"Authorization": secret, "Content-Type": "application/json"} | headers
            client._connection.request(method, path, data, sent)
            response = client._connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def create(self, flag: str) -> None:
        """Asks again while the database is not there, or not within the second that a busy machine may take."""
        place = "/api/admin/projects/default/features"
        answer = wait_until(
            lambda: (got := self.ask(ADMIN, "POST", place, {"name": flag})).status != 503 and got
        )
        assert answer.status == 201, answer.body

    def read(self) -> dict[str, Answer] | None:
        """All that SDKs read, once nothing of it comes from memory."""
        read = {name: self.ask(*request) for name, request in READS.items()}
        return None if any("cache-status" in answer.headers for answer in read.values()) else read

    def is_lost(self) -> bool:
        return "cache-status" in self.ask(SDK, "GET", FEATURES).headers


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]
) -> Iterator[Installation]:
    data = tmp_path_factory.mktemp("outage")
    install(data)
    with migrated_server(install) as database, reserved_port() as port:
        variables = TOKENS | {
            "DATABASE_URL": f"postgresql://flagadmin@127.0.0.1:{database.port}/flagadmin",
            "SECRET_KEY": "the same long secret key on all machines",
            "INIT_FRONTEND_API_TOKENS": FRONTEND,
            "FLAGADMIN_METRICS_TOKEN": METRICS,
            "FLAGADMIN_DATABASE_SECONDS": "1",
            "FLAGADMIN_LOG_LEVEL": "CRITICAL",  # nobody reads them
            "FLAGADMIN_SERVE_STALE_SECONDS": "3600",
        }
        with serve(data, port, workers=1, **variables) as process:
            wait_until_it_answers(port, process)
            installation = Installation(port, database)
            installation.create("checkout")
            yield installation


def test_what_sdks_read_goes_on(installed: Installation) -> None:
    for request in READS.values():
        installed.ask(*request)
    with closing(Client(installed.port)) as client:
        client._connection.request("GET", "/api/client/streaming", headers={"Authorization": SDK})
        stream = Listener(client._connection)
        assert stream.next().name == "unleash-connected"
        # A token that is used for the first time is known by the time of the next change.
        installed.create("before")
        assert stream.next().kinds == ["feature-updated"]
        before = wait_until(installed.read)
        assert {answer.status for answer in before.values()} == {200}
        etag = before["features"].headers["etag"]

        installed.database.kill()
        wait_until(installed.is_lost)
        check_what_is_answered(installed, before, etag)
        installed.database.start()
        wait_until(lambda: not installed.is_lost())

        installed.create("afterwards")
        assert stream.next().kinds == ["feature-updated"]
    after = wait_until(installed.read)
    assert b'"afterwards"' in after["features"].body
    wait_until(lambda: installed.ask("", "GET", "/readyz").body == b'{"health": "GOOD"}')


def check_what_is_answered(installed: Installation, before: dict[str, Answer], etag: str) -> None:
    for name, request in READS.items():
        answer = installed.ask(*request)
        assert (answer.status, answer.body) == (200, before[name].body), name
        assert answer.headers["cache-status"].startswith("flagadmin; hit; ttl=-"), name
        assert answer.headers["etag"] == before[name].headers["etag"], name

    # Who has this state, or a later one from another worker, keeps it.
    query, revision, version = etag.strip('"').split(":")
    later = f'"{query}:{int(revision) + 1}:{version}"'
    for known_etag in (etag, later):
        answer = installed.ask(SDK, "GET", FEATURES, **{"If-None-Match": known_etag})
        assert (answer.status, answer.headers["etag"]) == (304, known_etag)

    with closing(Client(installed.port)) as client:
        client._connection.request("GET", "/api/client/streaming", headers={"Authorization": SDK})
        assert Listener(client._connection).next().name == "unleash-connected"

    for secret, method, path, body in (
        (SDK.replace("sdk", "never-seen"), "GET", FEATURES, None),
        (ADMIN, "POST", f"{FLAG}/on", None),
        (ADMIN, "GET", "/api/admin/projects", None),
        (SDK, "POST", "/api/client/metrics", report_body()),
    ):
        answer = installed.ask(secret, method, path, body)
        assert (answer.status, answer.headers.get("retry-after")) == (503, "5"), (path, answer.body)

    ready = installed.ask("", "GET", "/readyz")
    assert (ready.status, json.loads(ready.body)["health"]) == (200, "DEGRADED")
    metrics = installed.ask(f"Bearer {METRICS}", "GET", "/metrics").body.decode()
    [line] = [line for line in metrics.splitlines() if line.startswith("flagadmin_stale_answers_total ")]
    assert float(line.split()[1]) >= len(READS)
