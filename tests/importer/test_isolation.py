"""Large imports run in a separate process, with the same responses and no changes if it is killed."""

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.support.import_bodies import body as body_of
from tests.support.import_bodies import strategy, switch
from tests.support.live_server import PATIENCE, Client, descendants, has_ended, wait_until
from tests.support.served import ADMIN, Served

pytestmark = pytest.mark.processes

IMPORT = "/api/admin/features-batch/import"
WAITS = "SELECT count(*) > 0 FROM pg_locks WHERE relation = 'audit_auditevent'::regclass AND NOT granted"


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with closing(Client(served.port, ADMIN)) as client:
        yield client


@pytest.fixture
def held(served: Served) -> Iterator[psycopg.Connection]:
    """Until this connection rolls back, an import waits with its flags written and its history not."""
    with served.connect() as connection:
        connection.execute("LOCK TABLE audit_auditevent IN SHARE MODE")
        yield connection


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


def test_it_is_gone_before_the_answer(client: Client, served: Served) -> None:
    """A server told to stop ends after its last answer, and would wait in vain for one that is still there."""
    for number in range(5):
        assert client.call("POST", IMPORT, body(f"gone-{number}"))[0] == 200
        assert not importing(served)


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


def test_what_a_project_refuses_and_its_override_reach_the_process(client: Client) -> None:
    expected = {"flag": "kept", "environment": "development", "enabled": True}
    saved = {"name": "Ada", "project": "default", "context": {}, "expectations": [expected]}
    documents = {on: body("kept", featureEnvironments=[switch("kept", on)]) for on in (True, False)}
    assert client.call("POST", IMPORT, documents[True])[0] == 200
    assert client.call("POST", "/api/admin/playground/contexts", saved)[0] == 201
    setting = {"refuseBrokenExpectations": True}
    assert client.call("PUT", "/api/admin/projects/default", setting)[0] == 200
    status, answer = client.call("POST", IMPORT, documents[False])
    record = json.loads(answer)
    assert (status, record["name"]) == (409, "BrokenExpectationsError")
    assert [broken["savedContext"] for broken in record["expectations"]] == ["Ada"]
    assert client.call("POST", f"{IMPORT}?ignoreExpectations=true", documents[False]) == (200, b"")


def test_who_may_skip_change_requests_skips_them_in_the_process(client: Client) -> None:
    config = "/api/admin/projects/default/environments/development/change-requests/config"
    on, off = (
        body("skipping", featureEnvironments=[switch("skipping", enabled)]) for enabled in (True, False)
    )
    assert client.call("POST", IMPORT, on)[0] == 200
    assert client.call("PUT", config, {"changeRequestsEnabled": True, "requiredApprovals": 1})[0] == 200
    assert client.call("POST", IMPORT, off) == (200, b"")
    _, answer = client.call("GET", "/api/admin/events/skipping")
    assert "change-request-skipped" in {event["type"] for event in json.loads(answer)["events"]}


def test_the_comment_and_what_requires_one_reach_the_process(client: Client) -> None:
    setting = "/api/admin/projects/default/environments/development/settings"
    sent = body("commented")
    assert client.call("PUT", setting, {"commentRequired": True})[0] == 200
    status, answer = client.call("POST", IMPORT, sent)
    assert (status, json.loads(answer)["details"][0]["path"]) == (400, "comment")
    status, answer = client.call("POST", IMPORT.replace("import", "validate"), sent)
    assert (status, len(json.loads(answer)["errors"])) == (200, 1)
    assert client.call("POST", IMPORT, sent, **{"X-Comment": "PAY-1182"})[0] == 200
    assert client.call("POST", IMPORT, body("in-body") | {"comment": "PAY-1183"})[0] == 200
    for flag, comment in (("commented", "PAY-1182"), ("in-body", "PAY-1183")):
        _, answer = client.call("GET", f"/api/admin/events/{flag}")
        assert {event["comment"] for event in json.loads(answer)["events"]} == {comment}


def test_a_killed_process_leaves_nothing_and_is_told(
    served: Served, held: psycopg.Connection, client: Client
) -> None:
    sent = body("never-1", "never-2")
    posting = Posting(served, sent)
    os.kill(posting.importing(held), signal.SIGKILL)
    status, answer = posting.answered()
    assert (status, json.loads(answer)["name"]) == (503, "ServiceUnavailableError")
    assert not [name for name in flags_of(client) if name.startswith("never")]
    held.rollback()
    assert client.call("POST", IMPORT, sent)[0] == 200


def test_told_to_stop_it_finishes_first(served: Served, held: psycopg.Connection) -> None:
    posting = Posting(served, body("told"))
    posting.importing(held)
    for pid in loaded(served):
        os.kill(pid, signal.SIGTERM)
    held.rollback()
    assert posting.answered() == (200, b"")


def test_it_ends_with_the_worker_that_started_it(served: Served, held: psycopg.Connection) -> None:
    posting = Posting(served, body("orphan"))
    apart = posting.importing(held)
    parents = loaded(served)
    served.kill(parents[parents[apart]])  # and there is another worker
    with pytest.raises((OSError, http.client.HTTPException)):
        posting.answered()
    wait_until(lambda: has_ended(apart))


class Posting(threading.Thread):
    """An import on its way."""

    def __init__(self, served: Served, sent: dict[str, Any]) -> None:
        super().__init__()
        self.served, self.sent = served, sent
        self.answer: tuple[int, bytes] | None = None
        self.error: OSError | http.client.HTTPException | None = None
        self.start()

    def run(self) -> None:
        try:
            with closing(Client(self.served.port, ADMIN)) as client:
                self.answer = client.call("POST", IMPORT, self.sent)
        except (OSError, http.client.HTTPException) as error:
            self.error = error

    def importing(self, held: psycopg.Connection) -> int:
        """The process that is at it, once it waits."""
        wait_until(lambda: not self.is_alive() or held.execute(WAITS).fetchone() == (True,))
        assert self.is_alive(), "it did not wait"
        [apart] = importing(self.served)
        return apart

    def answered(self) -> tuple[int, bytes]:
        self.join(PATIENCE)
        if self.error:
            raise self.error
        assert self.answer, "it was not answered"
        return self.answer


def loaded(served: Served) -> dict[int, int]:
    """The processes that have the application loaded to import, and those that they forked, with their parents."""
    return descendants(b"multiprocessing.forkserver", served.pid)


def importing(served: Served) -> set[int]:
    """What was forked to import: a child of the process that has the application loaded and is like it."""
    alike = loaded(served)
    return {pid for pid, parent in alike.items() if parent in alike}
