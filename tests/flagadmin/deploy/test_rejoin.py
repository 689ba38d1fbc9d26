"""A former primary comes back with deploy/postgresql/rejoin.sh: no commit of the new one waits for it before it follows."""

import threading
from collections.abc import Iterator

import pytest

from tests.support.live_server import wait_until
from tests.support.postgresql_versions import programs_of
from tests.support.replication import Server, replicated

pytestmark = [pytest.mark.processes, pytest.mark.machines]

INSERT = "INSERT INTO entries VALUES ('{}')"
ENTRIES = "SELECT string_agg(name, ',' ORDER BY name) FROM entries"
# Whether commits wait for a standby that is not there.
HELD_UP = """
SELECT current_setting('synchronous_standby_names') <> ''
   AND NOT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')
"""
SYNCHRONOUS = "SELECT sync_state FROM pg_stat_replication"


@pytest.fixture
def databases(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    """Of the bundled PostgreSQL, or of the version that a test names."""
    version = getattr(request, "param", None)
    with replicated(programs_of(version) if version else None) as both:
        both[0].ask("CREATE TABLE entries (name text)")
        yield both


class Looking(threading.Thread):
    """Looks at the new primary all the time."""

    def __init__(self, primary: Server) -> None:
        super().__init__(daemon=True)
        self.seen: list[str] = []
        self._primary = primary
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            self.seen.append(self._primary.ask(HELD_UP))

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def lose(primary: Server, standby: Server, name: str) -> None:
    """The primary dies with a commit that its standby does not have, and the standby takes its place."""
    standby.kill()
    primary.run("alone.sql")
    wait_until(lambda: primary.ask("SHOW synchronous_standby_names") == "")
    primary.ask(INSERT.format(f"lost {name}"))
    primary.kill()
    standby.start()
    standby.run("promote.sql")
    wait_until(lambda: standby.ask("SELECT pg_is_in_recovery()") == "f")


def rejoin(former: Server, primary: Server) -> str:
    looking = Looking(primary)
    looking.start()
    output = former.rejoin(primary)
    looking.stop()
    assert set(looking.seen) == {"f"}
    assert primary.ask(SYNCHRONOUS) == "sync"
    return output


@pytest.mark.parametrize("databases", [None, 15], ids=["bundled", "15"], indirect=True)
def test_directly_after_the_promotion_and_later(databases: tuple[Server, Server]) -> None:
    first, second = databases
    first.ask(INSERT.format("a"))
    lose(first, second, "of the first")
    rejoin(first, second)
    second.ask(INSERT.format("b"))
    assert first.ask(ENTRIES) == "a,b"

    # Later: the new primary has gone on for a while, over several files of its log.
    lose(second, first, "of the second")
    for _ in range(3):
        first.ask("SELECT pg_switch_wal()")
        first.ask("CHECKPOINT")
        first.ask(INSERT.format("c"))
    rejoin(second, first)
    first.ask(INSERT.format("d"))
    assert second.ask(ENTRIES) == "a,b,c,c,c,d"


def test_what_cannot_be_rewound_is_copied(databases: tuple[Server, Server]) -> None:
    first, second = databases
    first.ask(INSERT.format("a"))
    lose(first, second, "of the first")
    (first.folder / "global" / "pg_control").unlink()
    output = rejoin(first, second)
    assert "It cannot be rewound" in output
    assert list(first.folder.parent.glob(f"{first.folder.name}.2*")), "the old files are kept"
    second.ask(INSERT.format("b"))
    assert first.ask(ENTRIES) == "a,b"


def test_a_running_server_and_a_standby_are_refused(databases: tuple[Server, Server]) -> None:
    first, second = databases
    with pytest.raises(AssertionError, match="Stop the PostgreSQL of this machine first"):
        first.rejoin(second)
    first.kill()
    with pytest.raises(AssertionError, match="is a standby itself: promote it first"):
        first.rejoin(second)
