"""Two installations behind nginx, on two databases that Patroni runs, under load: each of them dies once.

SDKs notice nothing, nothing that was answered with success is lost, and everything works again without anybody's help.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import pytest

from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.load import (
    ADMIN,
    IMPORTED,
    TOKENS,
    Load,
    Streaming,
    evaluating,
    imported_names,
    importing,
    polling,
    polling_delta,
    reporting,
    toggling,
)
from tests.support.nginx import running_nginx
from tests.support.patroni import Node, patroni_pair
from tests.support.replication import Server, application_url
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

SOME = 5  # requests
SYNCHRONOUS_STANDBYS = "SHOW synchronous_standby_names"


@dataclass
class Site:
    """Loads by name; all but reads are refused during an outage."""

    loads: dict[str, Load]
    stream: Streaming
    installations: list[Popen[str]]

    @property
    def reads(self) -> list[Load]:
        return [self.loads["features"], self.loads["delta"]]

    @property
    def others(self) -> list[Load]:
        return [load for load in self.loads.values() if load not in self.reads]

    def wait_for_successes(self, loads: list[Load]) -> None:
        """Until each load has had some from now on."""
        now = time.monotonic()
        wait_until(lambda: all(load.successes(now) >= SOME for load in loads))


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with patroni_pair(tmp_path) as pair:
        yield pair


@pytest.fixture
def site(tmp_path: Path, nodes: tuple[Node, Node]) -> Iterator[Site]:
    variables = TOKENS | {
        "DATABASE_URL": application_url(*(node.server for node in nodes)),
        "SECRET_KEY": "the same long secret key on all machines",
        "FLAGADMIN_BEHIND_PROXY": "1",
        "FLAGADMIN_DATABASE_SECONDS": "1",
        "FLAGADMIN_COMMIT_SECONDS": "15",
        "FLAGADMIN_LOG_LEVEL": "CRITICAL",  # nobody reads them
    }
    with ExitStack() as running:
        front, *ports = (running.enter_context(reserved_port()) for _ in range(3))
        installations = [
            running.enter_context(serve(tmp_path / f"data-{port}", port, workers=1, **variables))
            for port in ports
        ]
        for port, process in zip(ports, installations, strict=True):
            wait_until_it_answers(port, process)
        running.enter_context(running_nginx(tmp_path / "nginx", front, ports))
        admin = Client(ports[0], ADMIN)
        running.callback(admin.close)
        created = admin.call("POST", "/api/admin/projects/default/features", {"name": "checkout"})
        assert created[0] == 201, created
        loads = {
            "features": Load(front, polling, revalidates=True),
            "delta": Load(front, polling_delta, revalidates=True),
            "toggles": Load(front, toggling),
            "reports": Load(front, reporting),
            "imports": Load(front, importing),
            "playground": Load(front, evaluating),
        }
        stream = Streaming(front)
        threads: list[Load | Streaming] = [*loads.values(), stream]
        for thread in threads:
            thread.start()
            running.callback(thread.stop)
        yield Site(loads, stream, installations)


def test_everything_may_die_once(site: Site, nodes: tuple[Node, Node]) -> None:
    primary, standby = nodes
    all_loads = list(site.loads.values())
    site.wait_for_successes(all_loads)

    primary.kill()
    wait_until(lambda: standby.is_now("primary"))
    site.wait_for_successes(all_loads)
    primary.start()  # it follows the other one now
    wait_until(lambda: primary.is_now("sync"))
    site.wait_for_successes(all_loads)

    lost = time.monotonic()
    primary.kill()
    wait_until(lambda: not standby.server.ask(SYNCHRONOUS_STANDBYS))
    site.wait_for_successes(all_loads)
    primary.start()
    wait_until(lambda: primary.is_now("sync"))

    died = time.monotonic()
    os.killpg(site.installations[0].pid, signal.SIGKILL)
    site.wait_for_successes(all_loads)
    versions_before = len(site.stream.versions)
    wait_until(lambda: len(site.stream.versions) > versions_before)
    for load in all_loads:
        load.stop()

    for load in site.reads:
        assert load.statuses() <= {200, 304}
    for load in site.others:
        assert {answer.status for answer in load.answers if answer.then < lost} <= {200, 202, 503}
        assert {answer.status for answer in load.answers if lost < answer.then < died} <= {200, 202}
        # A change that an installation was working on when it died is not repeated by nginx.
        assert load.statuses(died) <= {200, 202, 502}
    check_that_nothing_went_back(site)
    check_what_was_refused(site)
    check_what_is_stored(site, standby.server)
    wait_until(lambda: primary.server.ask("SELECT count(*) FROM projects_flag", "flagadmin") != "0")


def check_that_nothing_went_back(site: Site) -> None:
    features, delta = ([answer for answer in load.answers if answer.succeeded] for load in site.reads)
    revisions = [int(answer.headers["etag"].split(":")[1]) for answer in features]
    versions = [int(answer.headers["etag"].strip('"')) for answer in delta]
    for sequence in (revisions, versions, site.stream.versions):
        assert sequence == sorted(sequence)
    assert site.stream.refusals == []


def check_what_was_refused(site: Site) -> None:
    refused = [answer for load in site.others for answer in load.answers if answer.status == 503]
    assert {json.loads(answer.body)["name"] for answer in refused} == {"ServiceUnavailableError"}
    assert all("retry-after" in answer.headers for answer in refused)


def check_what_is_stored(site: Site, database: Server) -> None:
    reports, imports = site.loads["reports"].answers, site.loads["imports"].answers
    accepted = sum(answer.status == 202 for answer in reports)
    counted = int(database.ask("SELECT sum(yes) FROM projects_usagehour", "flagadmin"))
    assert accepted <= counted <= len(reports)
    names = set(database.ask("SELECT name FROM projects_flag", "flagadmin").split())
    for answer in imports:
        stored = len(imported_names(answer.number) & names)
        assert stored in ((IMPORTED,) if answer.status == 200 else (0, IMPORTED)), answer
