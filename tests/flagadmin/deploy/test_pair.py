"""A pair of servers without Patroni, as deploy/README.md says: promotion by hand, and the former primary comes back."""

import pytest

from tests.support.live_server import wait_until
from tests.support.replication import follow, replicated

pytestmark = [pytest.mark.processes, pytest.mark.machines]

ENTRIES = "SELECT string_agg(name, ',' ORDER BY name) FROM entries"


def test_the_standby_is_promoted_and_the_former_primary_follows_it() -> None:
    with replicated() as (first, second):
        first.ask("CREATE TABLE entries (name text)")
        first.ask("INSERT INTO entries VALUES ('a')")
        second.kill()
        first.run("alone.sql")
        wait_until(lambda: first.ask("SHOW synchronous_standby_names") == "")
        first.ask("INSERT INTO entries VALUES ('only on the first')")
        first.kill()
        second.start()
        second.run("promote.sql")
        wait_until(lambda: second.ask("SELECT pg_is_in_recovery()") == "f")

        second.ask("CHECKPOINT")
        follow(second, first)
        second.ask("INSERT INTO entries VALUES ('b')")
        assert first.ask(ENTRIES) == "a,b"
