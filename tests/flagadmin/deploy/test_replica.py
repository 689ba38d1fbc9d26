"""The read replica dies beside a healthy primary: the primary answers SDKs in its place, until it is back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import METRICS, Installation
from tests.support.live_server import reserved_port, wait_until
from tests.support.load import SDK, TOKENS
from tests.support.replication import application_url, replicated
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.machines]

OF_THE_REPLICA = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'flagadmin'"


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installation]:
    with replicated() as (primary, standby), reserved_port() as port:
        primary.run("alone.sql")  # commits do not wait for a replica
        variables = TOKENS | {
            "DATABASE_URL": application_url(primary),
            "DATABASE_REPLICA_URL": application_url(standby).replace("read-write", "any"),
            "SECRET_KEY": "the same long secret key on all machines",
            "FLAGADMIN_METRICS_TOKEN": METRICS,
            "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        }
        with serve(tmp_path, port, workers=1, **variables) as process:
            wait_until_it_answers(port, process)
            yield Installation(port, primary, standby)


def test_the_replica_dies(installed: Installation) -> None:
    assert installed.create("before") == 201
    wait_until(lambda: "before" in installed.polled())
    wait_until(lambda: installed.standby.ask(OF_THE_REPLICA) != "0")
    wait_until(lambda: installed.ready() == {"health": "GOOD"})

    installed.standby.kill()
    installed.polled()
    assert installed.ask(SDK, "GET", "/api/client/delta").status == 200
    assert installed.create("without") == 201
    wait_until(lambda: "without" in installed.polled())
    wait_until(lambda: installed.ready() == {"health": "DEGRADED", "reasons": ["no replica"]})
    wait_until(lambda: installed.metric("flagadmin_replica_lost_seconds") > 0)

    installed.standby.start()
    wait_until(lambda: installed.standby.ask(OF_THE_REPLICA) != "0")
    wait_until(lambda: installed.ready() == {"health": "GOOD"})
    assert {"before", "without"} <= installed.polled()
    assert installed.create("afterwards") == 201
    wait_until(lambda: "afterwards" in installed.polled())
    wait_until(lambda: installed.metric("flagadmin_replica_lost_seconds") == 0)
