"""Behind the real PgBouncer in transaction mode, with fewer connections than flagadmin wants, everything works."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.event_stream import Listener
from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.load import ADMIN, FLAG, SDK, TOKENS, import_body, report_body
from tests.support.pooler import pooled
from tests.support.postgresql_versions import programs_of
from tests.support.replication import APPLICATION, PASSWORDS, Server, deployed_server
from tests.support.serve import environment, serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

FEATURES = "/api/client/features"
USERS = b"userId\nmelinda\nahmed\n"


@dataclass
class Installation:
    port: int
    database: Server
    variables: dict[str, str]

    def ask(self, secret: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        with closing(Client(self.port, secret)) as client:
            return client.call(method, path, body, **headers)

    def ask_again(self, *request: Any, **headers: str) -> tuple[int, bytes]:
        """As a client does that is told to: on a busy machine, a connection may take more than a second."""
        answer: tuple[int, bytes] = wait_until(
            lambda: (got := self.ask(*request, **headers))[0] != 503 and got
        )
        return answer

    def admin(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        status, answer = self.ask_again(ADMIN, method, f"/api/admin/{path}", body, **headers)
        assert 200 <= status < 300, answer
        return json.loads(answer) if answer.startswith((b"{", b"[")) else answer


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    data = tmp_path_factory.mktemp("pooled")
    with (
        deployed_server(programs_of(15)) as database,
        reserved_port() as pooler,
        reserved_port() as port,
    ):
        password = quote(PASSWORDS["application_password"])
        url = f"postgresql://{APPLICATION}:{password}@127.0.0.1:{pooler}/flagadmin"
        variables = environment(
            data,
            DATABASE_URL=url,
            SECRET_KEY="the same long secret key on all machines",
            FLAGADMIN_DATABASE_SECONDS="1",
            **TOKENS,
        )
        with pooled(database, pooler, default_pool_size="3"), serve(data, port, **variables) as process:
            wait_until_it_answers(port, process)
            installation = Installation(port, database, variables)
            installation.admin("POST", "projects/default/features", {"name": "checkout", "type": "release"})
            yield installation


def test_requests_share_few_connections(installed: Installation) -> None:
    def ask(number: int) -> list[int]:
        context = {"context": {"userId": str(number), "appName": "shop"}}
        requests = (
            (ADMIN, "POST", f"{FLAG}/{'on' if number % 2 else 'off'}", None),
            (SDK, "GET", FEATURES, None),
            (SDK, "GET", "/api/client/delta", None),
            (SDK, "POST", "/api/client/metrics", report_body()),
            (ADMIN, "POST", "/api/admin/features-batch/import", import_body(number)),
            (ADMIN, "POST", "/api/admin/playground", context | {"environment": "development"}),
        )
        return [installed.ask_again(*request)[0] for request in requests]

    with ThreadPoolExecutor(8) as clients:
        for statuses in clients.map(ask, range(8)):
            assert statuses == [200, 200, 200, 202, 200, 200]
    assert installed.database.ask("SELECT sum(yes) FROM projects_usagehour", "flagadmin") == "8"


def test_changes_are_noticed_without_notifications(installed: Installation) -> None:
    with closing(Client(installed.port, SDK)) as client:
        client._connection.request("GET", "/api/client/streaming", headers={"Authorization": SDK})
        stream = Listener(client._connection)
        assert stream.next().name == "unleash-connected"
        installed.admin("POST", "projects/default/features", {"name": "noticed", "type": "release"})
        assert stream.next().kinds == ["feature-updated"]
        assert b'"noticed"' in installed.ask_again(SDK, "GET", FEATURES)[1]


def test_users_are_evaluated_and_no_lock_remains(installed: Installation) -> None:
    csv = {"Content-Type": "text/csv"}
    run = installed.admin("POST", "playground/users?environment=development", USERS, **csv)
    path = f"playground/users/{run['id']}"
    wait_until(lambda: installed.admin("GET", path)["state"] == "done")
    assert b"melinda" in installed.admin("GET", f"{path}/result")
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    wait_until(lambda: installed.database.ask(locks) == "0")


def test_everything_works_again_after_the_databases_restart(installed: Installation) -> None:
    def toggled() -> int:
        return installed.ask(ADMIN, "POST", f"{FLAG}/on")[0]

    def answers(wanted: Callable[[int], bool]) -> None:
        wait_until(lambda: wanted(toggled()))

    installed.database.kill()
    answers(lambda status: status == 503)
    installed.database.start()
    answers(lambda status: status == 200)
    assert installed.ask_again(SDK, "GET", FEATURES)[0] == 200
