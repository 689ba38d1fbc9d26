"""An external PostgreSQL server with few connections, shared with other clients."""

import http.client
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from flagadmin.core.db.bundled import cluster
from flagadmin.core.db.bundled.programs import SUPERUSER
from flagadmin.core.db.bundled.server import ConnectionParameters, ensure_running, release
from tests.support.live_server import PATIENCE, started, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

CLIENTS, GIVEN, RESERVED = 24, 20, 3  # PostgreSQL keeps three for superusers
AT_REST = 5  # connections at most, of a server that nobody asks
KEY = "*:*.unsafe-but-long-enough-for-this"
Answer = tuple[int, str | None]


@pytest.fixture
def database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Callable[[Path], None]
) -> Iterator[ConnectionParameters]:
    install(tmp_path / "theirs")
    monkeypatch.setitem(cluster._ALWAYS, "max_connections", str(GIVEN))
    yield ensure_running(tmp_path / "theirs", durable=False)
    release(tmp_path / "theirs")


@pytest.fixture
def port(database: ConnectionParameters, tmp_path: Path, install: Callable[[Path], None]) -> Iterator[int]:
    """A server that knows the database by its URL alone."""
    install(tmp_path / "ours")
    url = f"postgresql://{database['user']}@{quote(database['host'], safe='')}/{database['dbname']}"
    settings = {
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",  # with its pool, which tests do without
        "DATABASE_URL": url,
        "SECRET_KEY": "a secret key of more than 32 characters",
        "FLAGADMIN_DATA_DIR": str(tmp_path / "ours"),
        "INIT_ADMIN_API_TOKENS": KEY,
    }
    with started(1, **settings) as (port, _):
        yield port


@pytest.fixture
def burst(port: int) -> Iterator[Callable[[], list[Future[Answer]]]]:
    """All clients ask at once."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        yield lambda: [clients.submit(ask, port) for _ in range(CLIENTS)]


def ask(port: int) -> Answer:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as client:
        client.request("GET", "/api/admin/projects", headers={"Authorization": KEY})
        answer = client.getresponse()
        answer.read()
        return answer.status, answer.getheader("Retry-After")


def connections(database: ConnectionParameters, count: int) -> ExitStack | None:
    """So many at once for another client; None if they are not to be had."""
    with ExitStack() as stack:
        try:
            for _ in range(count):
                stack.enter_context(psycopg.connect(**database))
        except psycopg.OperationalError:
            return None
        return stack.pop_all()


def count_taken(database: ConnectionParameters) -> int:
    """Connections of others; one that asks is cheaper than many that try."""
    query = "SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with psycopg.connect(**database | {"user": SUPERUSER}) as asking:
        counted = asking.execute(query).fetchone()
    assert counted
    return int(counted[0])


def is_full(database: ConnectionParameters) -> bool:
    if (gotten := connections(database, 1)) is None:
        return True
    gotten.close()
    return False


def is_served(answers: list[Answer]) -> bool:
    """Whoever was refused was told when to come again."""
    return (200, None) in answers and set(answers) <= {(200, None), (503, "5")}


def test_what_a_burst_took_is_given_back_and_nothing_is_refused_for_good(
    database: ConnectionParameters, burst: Callable[[], list[Future[Answer]]]
) -> None:
    with psycopg.connect(**database | {"user": SUPERUSER}) as holder:
        holder.execute("LOCK TABLE projects_project")
        asked = burst()
        wait_until(lambda: is_full(database))
        holder.rollback()
        answers = [one.result(PATIENCE) for one in asked]
    assert is_served(answers), answers
    free = GIVEN - RESERVED - AT_REST
    with wait_until(lambda: count_taken(database) <= AT_REST and connections(database, free)):
        # Beside another client, with the few that are left.
        answers = [one.result(PATIENCE) for one in burst()]
    assert is_served(answers), answers
