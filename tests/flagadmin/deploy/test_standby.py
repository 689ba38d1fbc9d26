"""The synchronous standby dies: reads go on, changes are refused within seconds, and all is well once it is back."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flagadmin.core.errors import NoStandby, NotConfirmed
from tests.support.asking import METRICS, Answer, Installation
from tests.support.live_server import reserved_port, wait_until
from tests.support.load import ADMIN, FLAG, SDK, TOKENS, report_body
from tests.support.replication import application_url, replicated
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

FRONTEND = "*:development.0123456789abcdef-frontend"
THREADS, THREADS_THAT_WRITE = 8, 6
CREATE = (ADMIN, "POST", "/api/admin/projects/default/features")
REPORT = (SDK, "POST", "/api/client/metrics")
READS: dict[str, tuple[str, str, str, Any]] = {
    "features": (SDK, "GET", "/api/client/features?namePrefix=check", None),
    "delta": (SDK, "GET", "/api/client/delta", None),
    "frontend": (FRONTEND, "GET", "/api/frontend?userId=7", None),
    "frontend with a body": (FRONTEND, "POST", "/api/frontend", {"context": {"userId": "7"}}),
    "OFREP": (SDK, "POST", "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": "7"}}),
    "playground": (ADMIN, "POST", "/api/admin/playground", {"environment": "development", "context": {}}),
    "admin": (ADMIN, "GET", "/api/admin/projects", None),
    "page": ("", "GET", "/login/", None),
    "readiness": ("", "GET", "/readyz", None),
    "metrics": (f"Bearer {METRICS}", "GET", "/metrics", None),
}


def statuses_of_reads(installed: Installation) -> set[int]:
    return {installed.ask(*request).status for request in READS.values()}


@pytest.fixture(scope="module")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Installation]]:
    """Two, of one primary."""
    with replicated() as (primary, standby), ExitStack() as running:
        variables = TOKENS | {
            "DATABASE_URL": application_url(primary, standby),
            "SECRET_KEY": "the same long secret key on all machines",
            "INIT_FRONTEND_API_TOKENS": FRONTEND,
            "FLAGADMIN_METRICS_TOKEN": METRICS,
            "FLAGADMIN_THREADS": str(THREADS),
            "FLAGADMIN_COMMIT_SECONDS": "3",
            "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        }
        ports = [running.enter_context(reserved_port()) for _ in range(2)]
        for port in ports:
            folder = tmp_path_factory.mktemp("installation")
            process = running.enter_context(serve(folder, port, workers=1, **variables))
            wait_until_it_answers(port, process)
        installations = [Installation(port, primary, standby) for port in ports]
        assert installations[0].create("checkout") == 201
        installations[0].ask(ADMIN, "POST", f"{FLAG}/on")
        yield installations


@pytest.fixture
def installed(installations: list[Installation]) -> Installation:
    return installations[0]


class Asking(threading.Thread):
    """One request that may take long."""

    def __init__(self, installed: Installation, *request: Any) -> None:
        super().__init__(daemon=True)
        self.answered: Answer | None = None
        self._installed, self._request = installed, request
        self.start()

    def run(self) -> None:
        self.answered = self._installed.ask(*self._request)


def test_the_standby_dies(installed: Installation) -> None:
    assert statuses_of_reads(installed) == {200}
    assert installed.ready() == {"health": "GOOD"}
    wait_until(lambda: installed.metric("flagadmin_standby_required") == 1)

    installed.standby.kill()
    # More changes and reports than there are threads, all of which wait for their commit or for a place.
    waiting = [
        *(Asking(installed, *CREATE, {"name": f"in-doubt-{number}"}) for number in range(2 * THREADS)),
        *(Asking(installed, *REPORT, report_body()) for _ in range(2 * THREADS)),
    ]
    wait_until(lambda: installed.primary.ask(COMMITS_THAT_WAIT) != "0")
    while not any(request.answered for request in waiting):
        assert statuses_of_reads(installed) == {200}
    check_what_waited(installed, waiting)
    check_while_it_is_missing(installed)

    installed.standby.start()
    wait_until(lambda: installed.ready() == {"health": "GOOD"})
    assert wait_until(lambda: installed.create("afterwards")) == 201
    assert installed.ask(*REPORT, report_body())[0] == 202
    stored = installed.standby.ask("SELECT name FROM projects_flag", "flagadmin").split()
    assert set(stored) == installed.flags()


COUNTED = "SELECT coalesce(sum(yes), 0) FROM projects_usagehour"
COMMITS_THAT_WAIT = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'flagadmin'"
)


def check_what_waited(installed: Installation, waiting: list[Asking]) -> None:
    wait_for_answers(waiting)
    answers = [request.answered for request in waiting if request.answered]
    assert {status for status, _, _ in answers} == {503}
    assert all(headers["retry-after"] == "5" for _, headers, _ in answers)
    messages = {json.loads(body)["message"] for _, _, body in answers}
    assert NotConfirmed.default_message in messages
    assert messages <= {NotConfirmed.default_message, NoStandby.default_message}
    check_refusals_are_true(installed, "in-doubt", waiting[: 2 * THREADS])
    # Of the reports, no more than one batch, which are those that threads were waiting with.
    counted = int(installed.primary.ask(COUNTED, "flagadmin"))
    assert counted <= THREADS_THAT_WRITE


def check_refusals_are_true(installed: Installation, name: str, waiting: list[Asking]) -> None:
    """What the answer says is so: what is in doubt is stored, what was refused is not."""
    flags = installed.flags()
    for number, request in enumerate(waiting):
        assert request.answered
        refused = b"Nothing was changed" in request.answered.body
        assert (f"{name}-{number}" not in flags) == refused, request.answered


def check_while_it_is_missing(installed: Installation) -> None:
    assert installed.ready() == {"health": "DEGRADED", "reasons": ["no standby"]}
    assert statuses_of_reads(installed) == {200}
    wait_until(lambda: installed.metric("flagadmin_standby_missing_seconds") > 0)
    assert installed.metric('flagadmin_unconfirmed_commits_total{result="in doubt"}') > 0

    status, _, body = installed.ask(*CREATE, {"name": "refused"})
    assert (status, json.loads(body)["name"]) == (503, "ServiceUnavailableError")
    assert b"Nothing was changed" in body
    assert installed.ask(*REPORT, report_body())[0] == 503
    assert "refused" not in installed.flags()
    # What reads note for the first time: when tokens were last used, and the version of what an SDK sees.
    for statement in ("UPDATE groups_apitoken SET seen_at = NULL", "DELETE FROM projects_sdkversion"):
        installed.primary.ask(f"SET synchronous_commit = local; {statement}", "flagadmin")
    assert statuses_of_reads(installed) == {200}


def test_two_installations_lose_it_together(installations: list[Installation]) -> None:
    standby = installations[0].standby
    for installed in installations:
        wait_for_health(installed, "GOOD")
    standby.kill()
    waiting = [
        [Asking(installed, *CREATE, {"name": f"both-{port}-{number}"}) for number in range(THREADS)]
        for port, installed in enumerate(installations)
    ]
    for port, (installed, requests) in enumerate(zip(installations, waiting, strict=True)):
        wait_for_answers(requests)
        assert {request.answered.status for request in requests if request.answered} == {503}
        check_refusals_are_true(installed, f"both-{port}", requests)
    # Also the one whose commits the other one has canceled knows: nobody waits for its next change.
    for installed in installations:
        wait_for_health(installed, "DEGRADED")
        assert b"Nothing was changed" in installed.ask(*CREATE, {"name": "refused"}).body
        assert statuses_of_reads(installed) == {200}

    standby.start()
    for port, installed in enumerate(installations):
        wait_for_health(installed, "GOOD")
        assert installed.create(f"both-again-{port}") == 201
    assert installations[0].flags() == installations[1].flags()


def wait_for_health(installed: Installation, health: str) -> None:
    wait_until(lambda: installed.ready()["health"] == health)


def wait_for_answers(requests: list[Asking]) -> None:
    wait_until(lambda: all(request.answered for request in requests))
