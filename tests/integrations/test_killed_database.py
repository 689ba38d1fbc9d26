"""The database is killed while flags are created and events sent: no event is lost, and their order stays."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.load import ADMIN, TOKENS
from tests.support.receiver import Receiver, receiving
from tests.support.replication import Server, migrated_server
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]
KILLS, EVENTS_BETWEEN = 2, 5
FLAGS = "/api/admin/projects/default/features"


@pytest.fixture
def database(install: Callable[[Path], None]) -> Iterator[Server]:
    with migrated_server(install) as server:
        yield server


def test_no_event_is_lost_and_the_order_stays(
    tmp_path: Path, database: Server, install: Callable[[Path], None]
) -> None:
    install(tmp_path)
    with receiving() as receiver, reserved_port() as port:
        variables = TOKENS | {
            "DATABASE_URL": f"postgresql://flagadmin@127.0.0.1:{database.port}/flagadmin",
            "SECRET_KEY": "the same long secret key after all",
            "FLAGADMIN_DATABASE_SECONDS": "1",
            "FLAGADMIN_INTEGRATION_NETWORKS": "127.0.0.0/8",
            "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        }
        with serve(tmp_path, port, workers=1, **variables) as process:
            wait_until_it_answers(port, process)
            addon = {"provider": "webhook", "enabled": True, "events": ["feature-created"]}
            addon["parameters"] = {"url": f"{receiver.url}/hook"}
            assert ask(port, "POST", "/api/admin/addons", addon)[0] == 201
            created = create_and_kill(port, receiver, database)
            logged = wait_until(lambda: all_arrived(port, receiver))
        check(receiver, logged, created)


def create_and_kill(port: int, receiver: Receiver, database: Server) -> set[str]:
    """The flags whose creation was answered."""
    created: set[str] = set()
    stopping = threading.Event()
    creating = threading.Thread(target=create_flags, args=(port, created, stopping))
    creating.start()
    try:
        for _ in range(KILLS):
            before = len(receiver.got)
            wait_until(lambda before=before: len(receiver.got) >= before + EVENTS_BETWEEN)
            database.kill()
            database.start()
            # Nobody waits for the end of the turn that was cut off.
            database.ask(
                "UPDATE integrations_integration SET send_after = now(), claimed_until = NULL", "flagadmin"
            )
    finally:
        stopping.set()
        creating.join()
    return created


def create_flags(port: int, created: set[str], stopping: threading.Event) -> None:
    number = 0
    while not stopping.is_set():
        number += 1
        with suppress(OSError, HTTPException):
            status, _ = ask(port, "POST", FLAGS, {"name": f"flag-{number}"})
            if status == 201:
                created.add(f"flag-{number}")


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    with closing(Client(port, ADMIN)) as client:
        return client.call(method, path, body)


def all_arrived(port: int, receiver: Receiver) -> list[tuple[int, str]] | None:
    """The events of the log with their flags, in their order, once the receiver has as many."""
    status, answer = ask(port, "GET", "/api/admin/search/events?type=IS:feature-created&limit=1000")
    if status != 200:
        return None
    events = [(event["id"], event["featureName"]) for event in json.loads(answer)["events"]]
    arrived = {request.json()["id"] for request in receiver.got}
    return sorted(events) if events and arrived >= {number for number, _ in events} else None


def check(receiver: Receiver, logged: list[tuple[int, str]], created: set[str]) -> None:
    """What arrived again has the same id; for the first time, all came in the order of the log."""
    ids: dict[int, str] = {}
    for request in receiver.at("/hook"):
        message = request.headers["webhook-id"]
        assert ids.setdefault(request.json()["id"], message) == message
    assert list(ids) == [number for number, _ in logged]
    assert created <= {flag for _, flag in logged}
    assert created
