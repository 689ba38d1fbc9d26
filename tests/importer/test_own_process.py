"""Large imports run in a process of their own: the same answers, and nothing left when it is killed."""

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.importer.bodies import body as body_of
from tests.importer.bodies import strategy, switch
from tests.live import Client, running

IMPORT = "/api/admin/features-batch/import"
MANY = 5_000  # flags: time enough to be killed meanwhile
KEY = "*:*." + "5ec2e7" * 9 + "00"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that imports everything apart."""
    folder = tmp_path_factory.mktemp("installation")
    with running(
        workers=1,
        FLAGADMIN_DATA_DIR=str(folder),
        FLAGADMIN_DATABASE_DURABLE="0",
        FLAGADMIN_LOG_LEVEL="CRITICAL",
        FLAGADMIN_IMPORT_PROCESS_BYTES="0",
        INIT_ADMIN_API_TOKENS=KEY,
        DJANGO_SETTINGS_MODULE="flagadmin.settings",
    ) as port:
        yield port


@pytest.fixture
def client(port: int) -> Iterator[Client]:
    with closing(Client(port, KEY)) as client:
        yield client


def body(*names: str, **data: Any) -> dict[str, Any]:
    return body_of(*names, project="default", **data)


def flags_of(client: Client) -> list[str]:
    status, answer = client.call("GET", "/api/admin/projects/default/features")
    assert status == 200, answer
    return [flag["name"] for flag in json.loads(answer)["features"]]


def test_what_came_in_is_there_and_told_with_the_id_of_the_request(client: Client) -> None:
    sent = body("apart", featureStrategies=[strategy("apart")], featureEnvironments=[switch("apart")])
    status, answer = client.call("POST", IMPORT + "?report=1", sent, **{"X-Request-Id": "import-of-apart"})
    assert status == 200, answer
    assert json.loads(answer)["counts"]["create"] == 1
    assert "apart" in flags_of(client)
    _, events = client.call("GET", "/api/admin/events?feature=apart")
    assert {event["requestId"] for event in json.loads(events)["events"]} == {"import-of-apart"}


def test_it_is_gone_before_the_answer(client: Client) -> None:
    """A server told to stop ends after its last answer, and would wait in vain for one that is still there."""
    for number in range(5):
        assert client.call("POST", IMPORT, body(f"gone-{number}"))[0] == 200
        assert not importing()


def test_without_a_report_the_answer_is_empty(client: Client) -> None:
    assert client.call("POST", IMPORT, body("quiet")) == (200, b"")


def test_refusals_come_back_as_they_are(client: Client) -> None:
    sent = body("a b", "c/d")
    status, answer = client.call("POST", IMPORT, sent)
    record = json.loads(answer)
    assert (status, record["name"]) == (400, "ValidationError")
    assert [fault["path"] for fault in record["details"]] == [
        "data.features[0].name",
        "data.features[1].name",
    ]
    status, answer = client.call("POST", IMPORT.replace("import", "validate"), sent)
    assert status == 200
    assert len(json.loads(answer)["errors"]) == 1


def test_a_killed_process_leaves_nothing_and_is_told(port: int, client: Client) -> None:
    sent = body(*(f"never-{number}" for number in range(MANY)))
    posting, answers = being_imported(port, sent)
    os.kill(the_importing(), signal.SIGKILL)
    posting.join(120)
    [(status, answer)] = answers
    assert (status, json.loads(answer)["name"]) == (503, "ServiceUnavailableError")
    assert not [name for name in flags_of(client) if name.startswith("never")]
    assert client.call("POST", IMPORT, sent)[0] == 200


def test_told_to_stop_it_finishes_first(port: int, client: Client) -> None:
    sent = body(*(f"told-{number}" for number in range(MANY)))
    posting, answers = being_imported(port, sent)
    the_importing()
    for pid in processes(b"multiprocessing.forkserver"):
        os.kill(pid, signal.SIGTERM)
    posting.join(120)
    assert answers == [(200, b"")]


def test_it_ends_with_the_worker_that_started_it(client: Client) -> None:
    sent = body(*(f"orphan-{number}" for number in range(MANY)))
    until_none()
    posting = threading.Thread(target=post_in_vain, args=(client, sent))
    posting.start()
    apart = the_importing()
    [worker] = processes(b"spawn_main")
    os.kill(worker, signal.SIGKILL)
    posting.join(120)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{apart}").exists():
        assert time.monotonic() < deadline, "it goes on without its worker"
        time.sleep(0.02)


def being_imported(port: int, sent: dict[str, Any]) -> tuple[threading.Thread, list[tuple[int, bytes]]]:
    """A thread that waits for this import, and where it puts the answer. No other import is under way."""
    answers = []

    def post() -> None:
        with closing(Client(port, KEY)) as another:
            answers.append(another.call("POST", IMPORT, sent))

    until_none()
    posting = threading.Thread(target=post)
    posting.start()
    return posting, answers


def post_in_vain(client: Client, sent: dict[str, Any]) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        client.call("POST", IMPORT, sent)


def processes(kind: bytes) -> dict[int, int]:
    """Descendants of this process that run this, with their parents."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if kind in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
        except OSError:
            continue  # gone meanwhile
    return {pid: parents[pid] for pid in found if descends(pid, parents)}


def descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def until_none() -> None:
    """The ones before are gone."""
    deadline = time.monotonic() + 60
    while importing():
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.02)


def importing() -> set[int]:
    """What was forked to import: a child of the process that has the application loaded and is like it."""
    alike = processes(b"multiprocessing.forkserver")
    return {pid for pid, parent in alike.items() if parent in alike}


def the_importing() -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := importing():
            return found.pop()
        time.sleep(0.002)
    raise AssertionError("no process was started")
