"""GET /api/client/streaming of a real server with two workers: what is told, to whom, when, and when it ends."""

import http.client
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flagadmin.core.db.bundled.programs import SUPERUSER
from tests.support.event_stream import Listener, listening
from tests.support.live_server import has_ended, wait_until
from tests.support.served import ADMIN, STREAMS, Served, serving

pytestmark = pytest.mark.processes

EVENT_BYTES = 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]) -> Iterator[Served]:
    """A server of its own: these tests kill its database and a worker."""
    data_dir: Path = tmp_path_factory.mktemp("streams") / "data"
    install(data_dir)
    with serving(data_dir) as served:
        yield served


def test_what_changes_is_told_to_the_clients_of_all_workers(served: Served) -> None:
    served.flag("told")
    secret = served.token()
    with ExitStack() as stack:
        # Six connections are not all accepted by one of two workers, one time in 32; then less is shown.
        clients = [stack.enter_context(listening(served.port, secret)) for _ in range(6)]
        versions = set()
        for client in clients:
            assert (client.status, client.headers["Content-Type"]) == (200, "text/event-stream")
            assert "Content-Length" not in client.headers
            first = client.next()
            assert (first.name, first.kinds) == ("unleash-connected", ["hydration"])
            assert {flag["name"]: flag for flag in first.changes[0]["features"]} == served.features(secret)
            assert first.version == first.changes[0]["eventId"]
            versions.add(first.version)
        assert len(versions) == 1  # whichever worker
        served.switch("told", "on")
        updates = {client: client.next() for client in clients}
        assert {update.name for update in updates.values()} == {"unleash-updated"}
        [data] = {update.fields["data"] for update in updates.values()}
        [change] = json.loads(data)["events"]
        assert (change["type"], change["feature"]) == ("feature-updated", served.features(secret)["told"])
        assert {update.version for update in updates.values()} == {change["eventId"]}


def test_whoever_connects_again_gets_what_was_missed(served: Served) -> None:
    served.flag("missed")
    secret = served.token()
    with listening(served.port, secret) as client:
        version = client.next().version
    with listening(served.port, secret, version) as client:
        assert (client.next().fields["data"], client.status) == ('{"events":[]}', 200)
        served.switch("missed", "on")
        after = client.next().version
    with ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(listening(served.port, secret, version))
            # A worker that had no stream of the scope meanwhile does not know the old version.
            assert client.next().kinds in (["feature-updated"], ["hydration"])
            client = stack.enter_context(listening(served.port, secret, after))
            assert client.next().version == after
    for unknown in ("1", "nonsense", "9" * 30):
        with listening(served.port, secret, unknown) as client:
            assert client.next().kinds == ["hydration"]


def test_addresses_with_slashes_too_many_stay_open(served: Served) -> None:
    served.flag("stays")
    secret = served.token()
    with (
        listening(served.port, secret, path="/api//client/streaming") as first,
        listening(served.port, secret, path="//api/client/streaming/") as second,
    ):
        for client in (first, second):
            assert client.next().name == "unleash-connected"
        served.switch("stays", "on")
        for client in (first, second):
            assert client.next().name == "unleash-updated"


def test_only_backend_tokens_open_streams(served: Served) -> None:
    for secret, status in (("nonsense", 401), (ADMIN, 403)):
        with listening(served.port, secret) as client:
            assert client.status == status
            assert client.headers["Content-Type"] == "application/json"


def test_too_many_streams_are_refused(served: Served) -> None:
    served.flag("answered")
    secret = served.token()
    with ExitStack() as stack:
        refused: list[Listener] = []
        for _ in range(20 * STREAMS):
            client = stack.enter_context(listening(served.port, secret))
            if client.status != 200:
                refused.append(client)
                if len(refused) == 2:
                    break
        assert [client.status for client in refused] == [429, 429]
        assert refused[0].headers["Retry-After"] == "30"
        assert refused[0].body()["name"] == "RateLimitError"
        # Others are answered as ever.
        assert served.features(secret)

    def accepted() -> bool:
        with listening(served.port, secret) as client:
            return client.status == 200

    wait_until(accepted)


def test_it_ends_with_the_token(served: Served) -> None:
    served.admin("POST", "projects", {"id": "docs", "name": "Docs"})
    served.admin("POST", "projects", {"id": "gone", "name": "Gone"})
    revoked = served.token()
    narrowed, elsewhere, kept = (
        served.token("docs", "gone"),
        served.token(tokenName="elsewhere"),
        served.token("docs"),
    )
    with ExitStack() as stack:
        clients = {
            secret: stack.enter_context(listening(served.port, secret))
            for secret in (revoked, narrowed, elsewhere, kept)
        }
        for client in clients.values():
            client.next()
        served.admin("DELETE", f"api-tokens/{revoked}")
        served.admin("DELETE", "projects/gone")
        served.sql("UPDATE groups_apitoken SET environment_id = 'production' WHERE name = 'elsewhere'")
        for secret in (revoked, narrowed, elsewhere):
            assert [event.name for event in clients[secret].rest()] == [], secret
        served.flag("kept", "docs")
        assert clients[kept].next().kinds == ["feature-updated"]
    with listening(served.port, revoked) as client:
        assert client.status == 401
    with listening(served.port, narrowed, 1) as client:
        assert client.next().kinds == ["hydration"]


def test_it_ends_when_the_token_expires(served: Served) -> None:
    """The more time it has, the longer it took to open a stream before: a busy machine may be late."""
    for seconds in (1, 2, 4, 8, 16, 32):
        secret = served.token(expiresAt=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat())
        with listening(served.port, secret) as client:
            if client.status == 200:
                assert {event.name for event in client.rest()} <= {"", "unleash-connected"}
                break
            assert client.status == 401
    else:
        raise AssertionError("no stream was opened in time")
    with listening(served.port, secret) as client:
        assert client.status == 401


def test_a_lost_notification_is_made_up_for(served: Served) -> None:
    served.flag("unheard")
    with listening(served.port, served.token()) as client:
        client.next()
        served.sql("ALTER TABLE projects_projectrevision DISABLE TRIGGER USER")
        try:
            served.switch("unheard", "on")
            assert client.next().kinds == ["feature-updated"]
        finally:
            served.sql("ALTER TABLE projects_projectrevision ENABLE TRIGGER USER")


def test_lost_connections_to_the_database(served: Served) -> None:
    served.flag("cut")
    with listening(served.port, served.token()) as client:
        client.next()
        served.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        wait_until(lambda: switched(served, "cut"))
        assert client.next().kinds == ["feature-updated"]


def test_streams_survive_a_killed_database(served: Served) -> None:
    """The streams stay, and hear of what is changed as soon as it is back."""
    served.flag("killed")
    with listening(served.port, served.token()) as client:
        client.next()
        served.sql("CHECKPOINT", SUPERUSER)  # a server for tests would lose what it has not written
        postmaster = (served.data_dir / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0]
        os.kill(int(postmaster), signal.SIGKILL)
        wait_until(lambda: switched(served, "killed"))
        assert client.next().kinds == ["feature-updated"]


def switched(served: Served, name: str) -> bool:
    try:
        served.switch(name, "on")
    except (AssertionError, OSError, http.client.HTTPException):
        return False
    return True


def test_clients_of_a_killed_worker_miss_no_change(served: Served) -> None:
    """Its clients connect again: no change is missed, and nobody goes back to an older state."""
    served.flag("survivor")
    secret = served.token()
    with ExitStack() as stack:
        clients = [stack.enter_context(listening(served.port, secret)) for _ in range(6)]
        version = max([client.next().version for client in clients])
        os.kill(served.workers()[0], signal.SIGKILL)
        wait_until(lambda: switched(served, "survivor"))
        states = set()
        for client in clients:
            try:
                update = client.next()
            except (AssertionError, OSError, http.client.HTTPException):
                client = stack.enter_context(listening(served.port, secret, version))
                update = client.next()
            assert update.kinds in (["feature-updated"], ["hydration"], [])
            while not update.changes:
                update = client.next()
            states.add(update.version)
        assert len(states) == 1
        assert states > {version} or max(states) > version


def test_a_slow_reader_costs_nobody_else_anything(served: Served) -> None:
    """What it does not read is not kept for it; others are told meanwhile. Then it gets what holds by that time."""
    served.flag("large")
    secret = served.token()
    with listening(served.port, secret) as slow, listening(served.port, secret) as client:
        slow.next()
        client.next()
        for number in range(50):
            text = f"'{number}' || repeat('x', {EVENT_BYTES})"
            served.sql(f"UPDATE projects_flag SET description = {text} WHERE name = 'large'")
            latest = client.next()
        told = 1
        while slow.next().version != latest.version:
            told += 1
        assert told < 25


def test_streams_that_nobody_reads_share_what_they_are_to_get(served: Served) -> None:
    """A large hydration is neither copied for each of them nor given to Granian before they read."""
    served.flag("larger")
    served.sql(
        f"UPDATE projects_flag SET description = repeat('x', {20 * EVENT_BYTES}) WHERE name = 'larger'"
    )
    secret = served.token()
    request = f"GET /api/client/streaming HTTP/1.1\r\nHost: localhost\r\nAuthorization: {secret}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(6):  # both workers have read it
            assert stack.enter_context(listening(served.port, secret)).next().kinds == ["hydration"]
        before = served.megabytes()
        for _ in range(STREAMS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(request.encode())
            assert connection.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 429")
        assert served.megabytes() < before + 100
    served.sql("UPDATE projects_flag SET description = '' WHERE name = 'larger'")


def test_a_server_that_stops_lets_clients_go_and_ends_what_runs_beside_it(served: Served) -> None:
    """The last test: it stops the server. Clients come back at different times."""
    with ExitStack() as stack:
        clients = [stack.enter_context(listening(served.port, served.token())) for _ in range(8)]
        for client in clients:
            client.next()
        users = b"userId\n" + b"".join(b"%d\n" % number for number in range(90_000))
        csv = {"Content-Type": "text/csv"}
        run = served.admin("POST", "playground/users?environment=production&flag=told", users, **csv)
        wait_until(lambda: served.admin("GET", f"playground/users/{run['id']}")["state"] != "waiting")
        os.kill(served.pid, signal.SIGTERM)
        pauses = {int(client.rest()[-1].fields["retry"]) for client in clients}
    assert len(pauses) > 4
    assert all(500 <= pause <= 2_500 for pause in pauses)
    wait_until(lambda: has_ended(served.pid))
