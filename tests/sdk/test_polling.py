"""Polls of a real server with two workers, while notifications are lost: nothing is older than a second.

Each test changes something, waits for that second, and then asks on connections to both workers.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg
import pytest

from flagadmin.core.db.bundled.cluster import Cluster
from flagadmin.core.db.bundled.server import ensure_running, release
from sdk.watcher.watcher import NAME, SURE_SECONDS
from tests.support.live_server import PATIENCE, PATIENT, Client, running, wait_until

pytestmark = pytest.mark.processes

FEATURES = "/api/client/features"
CONNECTIONS = 16  # all to the same worker once in 32,768 runs
BY_DJANGO = {"Cookie": "none=1"}  # Django answers any request with a cookie
FILL = """
import json
import django
django.setup()
from groups.models import ApiToken
from tests.support.cast import make_project, make_token
from tests.support.flags import make_flag
make_project("shop")
make_flag("a", environment="production", enabled=True)
for n in range(10):
    secret = make_token("backend", projects=["shop"], environment="production", name=str(n))
    print(json.dumps([ApiToken.objects.get(name=str(n)).pk, secret]))
print(json.dumps([0, make_token("admin", name="admin")]))
"""
LOSE_NOTIFICATIONS = """
DO $$
DECLARE it record;
BEGIN
    FOR it IN SELECT tgrelid::regclass AS place, tgname FROM pg_trigger WHERE tgname LIKE 'pgtrigger_notify%' LOOP
        EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', it.place, it.tgname);
    END LOOP;
END $$
"""


class Token(NamedTuple):
    id: int
    secret: str


@dataclass
class Polled:
    """A server, its database, and tokens that no test has used."""

    port: int
    folder: Path
    url: str
    tokens: list[Token]
    admin: str

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def watchers(self) -> int:
        with psycopg.connect(self.url) as connection:
            counted = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [NAME]
            ).fetchone()
        assert counted
        return int(counted[0])


@pytest.fixture(scope="module")
def polled(tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]) -> Iterator[Polled]:
    folder = tmp_path_factory.mktemp("polled")
    for name in ("theirs", "ours"):
        install(folder / name)
    database = ensure_running(folder / "theirs", durable=False)
    url = f"postgresql://{database['user']}@{quote(database['host'], safe='')}/{database['dbname']}"
    variables = {
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
        "DATABASE_URL": url,
        "SECRET_KEY": "a secret key of more than 32 characters",
        "FLAGADMIN_DATA_DIR": str(folder / "ours"),
        "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        "FLAGADMIN_ALLOWED_HOSTS": "localhost,127.0.0.1",
    }
    filled = subprocess.run(
        [sys.executable, "-c", FILL],
        env=os.environ | PATIENT | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    *tokens, admin = (Token(*json.loads(line)) for line in filled.stdout.splitlines())
    variables |= {"FLAGADMIN_DATABASE_SECONDS": "1", "FLAGADMIN_SERVE_STALE_SECONDS": "0"}
    with running(2, **variables) as port:
        polled = Polled(port, folder / "theirs", url, tokens, admin.secret)
        polled.sql(LOSE_NOTIFICATIONS)
        yield polled
    release(folder / "theirs")


class Sdks:
    """Connections with one token, which are answered from memory before the test goes on."""

    def __init__(self, polled: Polled, secret: str) -> None:
        self._stack = ExitStack()
        self._clients = [
            self._stack.enter_context(closing(Client(polled.port, secret))) for _ in range(CONNECTIONS)
        ]
        until = time.monotonic() + SURE_SECONDS
        while time.monotonic() < until:
            assert self.statuses() == {200}
            time.sleep(0.1)

    def __enter__(self) -> "Sdks":
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def poll(self, **headers: str) -> set[int]:
        """The statuses that the connections get at once."""
        return {status for status, _ in self._each(lambda client: client.call("GET", FEATURES, **headers))}

    def statuses(self) -> set[int]:
        """Those that they get in the end: whoever a busy machine keeps from the database for a second asks again."""
        return {status for status, _ in self._each(served)}

    def _each(self, ask: Callable[[Client], tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            return list(threads.map(ask, self._clients))

    def flags(self) -> set[tuple[tuple[str, bool], ...]]:
        """What the connections get: (name, enabled) of each flag."""
        bodies = [json.loads(body) for _, body in self._each(served)]
        return {tuple((flag["name"], flag["enabled"]) for flag in body["features"]) for body in bodies}


def served(client: Client) -> tuple[int, bytes]:
    """What is answered when it is not 503, which `FLAGADMIN_DATABASE_SECONDS` makes likely here."""
    answer: tuple[int, bytes] = wait_until(lambda: (got := client.call("GET", FEATURES))[0] != 503 and got)
    return answer


def wait_for_the_promise() -> None:
    time.sleep(SURE_SECONDS)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (
            "WITH s AS (DELETE FROM groups_apitokenproject WHERE token_id = {0}) "
            "DELETE FROM groups_apitoken WHERE id = {0}",
            401,
        ),
        ("UPDATE groups_apitoken SET expires_at = now() WHERE id = {0}", 401),
        ("UPDATE groups_apitoken SET kind = 'frontend' WHERE id = {0}", 403),
    ],
    ids=["revoked", "expired", "other kind"],
)
def test_a_token_that_is_refused(polled: Polled, change: str, status: int) -> None:
    token = polled.tokens.pop()
    with Sdks(polled, token.secret) as sdks:
        polled.sql(change.format(token.id))
        wait_for_the_promise()
        assert sdks.statuses() == {status}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("UPDATE groups_apitoken SET environment_id = 'development' WHERE id = {0}", {"a": False}),
        ("DELETE FROM groups_apitokenproject WHERE token_id = {0}", {}),
        ("UPDATE projects_flag SET name = 'renamed' WHERE name = 'a'", {"renamed": True}),
    ],
    ids=["other environment", "project taken away", "flag changed"],
)
def test_a_change_is_visible(polled: Polled, change: str, expected: dict[str, bool]) -> None:
    token = polled.tokens.pop()
    with Sdks(polled, token.secret) as sdks:
        (before,) = sdks.flags()
        assert dict(before) == {"a": True}
        polled.sql(change.format(token.id))
        wait_for_the_promise()
        (after,) = sdks.flags()
        assert dict(after) == expected
    polled.sql("UPDATE projects_flag SET name = 'a' WHERE name = 'renamed'")


def test_whoever_changes_a_flag_sees_it_at_once_on_every_worker(polled: Polled) -> None:
    switch = "/api/admin/projects/shop/features/a/environments/production"
    with (
        Sdks(polled, polled.tokens.pop().secret) as sdks,
        closing(Client(polled.port, polled.admin)) as admin,
    ):
        for enabled in (False, True) * 10:
            status, _ = admin.call("POST", f"{switch}/{'on' if enabled else 'off'}")
            assert status == 200
            assert sdks.flags() == {(("a", enabled),)}


@pytest.fixture(scope="module")
def watched_token(polled: Polled) -> Token:
    """Both workers can learn answers to it at once."""
    token = polled.tokens.pop()
    with Sdks(polled, token.secret):
        return token


def raw(port: int, request: bytes) -> tuple[list[bytes], bytes]:
    """Status line and headers, without those of the moment, and body."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(request)
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answered.partition(b"\r\n\r\n")
    moment = (b"x-request-id:", b"date:")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(moment)]
    return lines, re.sub(rb'"id":"[^"]+"', b"", body)


@pytest.mark.parametrize(
    "odd",
    [
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/features HTTP/1.0\r\nHost: localhost",
        b"GET /api/client/features HTTP/1.0",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nHost: localhost",
        b"GET http://elsewhere.example/api/client/features HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/feature%73 HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/features? HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/features?a=%ff HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/features#part HTTP/1.1\r\nHost: localhost",
        b"HEAD /api/client/features HTTP/1.1\r\nHost: localhost",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nUnleash-Client-Spec: 5.2.0\xe9",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nAuthorization: \xc3\xa9",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nIf-None-Match:   *  ",
        b"GET /api/client/features HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nAccept-Encoding: gzip;q=0",
    ],
)
def test_odd_requests_are_answered_as_django_answers_them(
    polled: Polled, watched_token: Token, odd: bytes
) -> None:
    request = odd + b"\r\nAuthorization: " + watched_token.secret.encode() + b"\r\nConnection: close\r\n"
    expected = raw(polled.port, request + b"Cookie: none=1\r\n\r\n")
    for _ in range(6):  # enough for both workers to learn
        assert raw(polled.port, request + b"\r\n") == expected


def test_killed_watchers_come_back(polled: Polled) -> None:
    token = polled.tokens.pop()
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{NAME}'"
    with Sdks(polled, token.secret) as sdks:
        polled.sql(f"{kill}; UPDATE projects_flag SET stale = NOT stale")
        assert sdks.statuses() == {200}
        wait_until(lambda: polled.watchers() == 2)
        polled.sql(f"{kill}; UPDATE groups_apitoken SET expires_at = now() WHERE id = {token.id}")
        wait_for_the_promise()
        assert sdks.statuses() == {401}


def test_polls_survive_a_stopped_database(polled: Polled) -> None:
    """What has been answered from memory is then answered as Django answers it; and it comes back."""
    token = polled.tokens.pop()
    with Sdks(polled, token.secret) as sdks:
        Cluster(polled.folder, durable=False).stop()
        wait_for_the_promise()
        assert sdks.poll() == sdks.poll(**BY_DJANGO) == {503}
        ensure_running(polled.folder, durable=False)
        wait_until(lambda: sdks.poll() == {200})
        wait_until(lambda: polled.watchers() == 2)
