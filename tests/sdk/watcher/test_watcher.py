"""The watcher of a worker's event loop: what it knows, when it is told, and when it is not certain."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from flagadmin.core.db import commits
from flagadmin.core.db.commits import CHANNEL
from flagadmin.core.db.outages import reach, replica
from groups.models import ApiToken, ApiTokenProject
from projects.models import Flag, Project
from sdk.watcher import state as replica_reader
from sdk.watcher import watcher as module
from sdk.watcher.state import State, find_changed_projects
from sdk.watcher.watcher import NAME, Watcher
from tests.support.cast import make_project, make_token
from tests.support.event_loop import in_thread, until
from tests.support.flags import make_flag
from tests.support.watching import PATIENCE, beside_watcher, watching

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a notification nothing would be read again, and what was read stays certain."""
    monkeypatch.setattr(module, "PAUSE", PATIENCE)
    monkeypatch.setattr(module, "SURE_SECONDS", PATIENCE)


@pytest.fixture
def backend() -> ApiToken:
    make_project("shop")
    make_flag("a")
    make_token("backend", projects=["shop"], environment="production", name="sdk")
    return ApiToken.objects.get(name="sdk")


def test_it_is_notified_of_changes(patient: None, backend: ApiToken) -> None:
    told: list[frozenset[str]] = []

    async def work(watcher: Watcher) -> None:
        await until(lambda: watcher._state)
        watcher.subscribe(lambda before, after: told.append(find_changed_projects(before, after)))
        await in_thread(lambda: Flag.objects.update(stale=True))
        await until(lambda: told)
        await in_thread(lambda: make_project("new"))
        await until(lambda: len(told) == 2)
        await in_thread(lambda: Project.objects.filter(id="new").delete())
        await until(lambda: len(told) == 3)

    watching(work)
    assert told == [{"shop"}, {"new"}, {"new"}]


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token.delete(),
        lambda token: ApiToken.objects.update(expires_at=timezone.now()),
        lambda token: ApiToken.objects.update(environment_id="development"),
        lambda token: ApiTokenProject.objects.all().delete(),
    ],
    ids=["revoked", "expired", "other environment", "without projects"],
)
def test_it_is_notified_of_tokens(
    patient: None, backend: ApiToken, change: Callable[[ApiToken], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(watcher: Watcher) -> tuple[Any, Any]:
        token = backend.pk
        watcher.use(token)
        before = await until(lambda: watcher._state and watcher._state.tokens.get(token))
        assert (before.environment, [project for _, project in before.scopes]) == ("production", ["shop"])
        await in_thread(lambda: change(backend))
        await until(lambda: watcher._state and watcher._state.tokens[token] != before)
        assert watcher._state
        return before, watcher._state.tokens[token]

    before, after = watching(work)
    assert before != after


@beside_watcher
async def test_it_rests_while_nobody_asks_and_is_woken_by_who_does(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_PAUSE", PATIENCE)
    monkeypatch.setattr(module, "SURE_SECONDS", 0.0)
    await until(lambda: watcher.latest)
    monkeypatch.setattr(module, "RESTS_AFTER", -1.0)
    await until(lambda: not watcher._asked.is_set())
    await in_thread(lambda: make_project("notified"))
    await until(lambda: watcher.latest and "notified" in watcher.latest.revisions)
    for ask in (lambda: watcher.state, lambda: watcher.use(1)):
        await until(lambda: not watcher._asked.is_set())
        read_at = watcher._read_at
        ask()
        await until(lambda read_at=read_at: watcher._read_at > read_at)


def test_changes_are_seen_without_notifications(backend: ApiToken) -> None:
    """The read that comes anyway finds the change."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE projects_projectrevision DISABLE TRIGGER USER")

    async def work(watcher: Watcher) -> None:
        state = await until(lambda: watcher.state)
        await in_thread(lambda: Flag.objects.update(stale=True))
        await until(lambda: watcher.state and watcher.state is not state)

    try:
        watching(work)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE projects_projectrevision ENABLE TRIGGER USER")


def test_a_killed_connection_is_made_again(
    patient: None, backend: ApiToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = module.connect
    told: list[frozenset[str]] = []
    may_connect = asyncio.Event()

    async def connect_when_it_may(alias: str, name: str) -> Any:
        await may_connect.wait()
        return await connect(alias, name)

    def kill() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database()",
                [NAME],
            )
            assert cursor.fetchall() == [(True,)]

    async def work(watcher: Watcher) -> None:
        may_connect.set()
        await until(lambda: watcher.state)
        may_connect.clear()
        watcher.subscribe(lambda before, after: told.append(find_changed_projects(before, after)))
        await in_thread(kill)
        await until(lambda: watcher.state is None)
        await in_thread(lambda: Flag.objects.update(stale=True))
        may_connect.set()
        await until(lambda: watcher.state)

    monkeypatch.setattr(module, "connect", connect_when_it_may)
    watching(work)
    assert told == [{"shop"}]


@beside_watcher
async def test_a_read_that_is_too_long_ago_is_not_certain(watcher: Watcher, backend: ApiToken) -> None:
    await until(lambda: watcher.state)
    watcher._read_at -= module.SURE_SECONDS
    assert watcher.state is None
    await until(lambda: watcher.state)


def test_a_subscriber_that_fails_harms_nobody(backend: ApiToken, caplog: pytest.LogCaptureFixture) -> None:
    told: list[State] = []

    def fail(before: State | None, after: State) -> None:
        raise ValueError("always")

    async def work(watcher: Watcher) -> None:
        watcher.subscribe(fail)
        watcher.subscribe(lambda before, after: told.append(after))
        await until(lambda: told)
        assert await until(lambda: watcher.state) is told[0]

    watching(work)
    assert "A subscriber failed" in caplog.text


def test_uses_are_noted_and_unused_tokens_forgotten(
    backend: ApiToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_token("backend", environment="production", name="unused")
    unused = ApiToken.objects.get(name="unused")

    async def work(watcher: Watcher) -> None:
        watcher.use(unused.pk)
        watcher._used[unused.pk] -= module.TOKEN_IDLE + 1
        watcher._noted_at -= 1
        watcher.use(backend.pk)
        monkeypatch.setattr(module, "NOTE_USES", 0)
        await until(lambda: unused.pk not in watcher._used)
        assert backend.pk in watcher._used
        async with asyncio.timeout(PATIENCE):
            while not await in_thread(ApiToken.objects.exclude(seen_at=None).exists):
                await asyncio.sleep(0.01)

    watching(work)
    backend.refresh_from_db()
    unused.refresh_from_db()
    assert backend.seen_at
    assert timezone.now() - backend.seen_at < timedelta(minutes=1)
    assert unused.seen_at is None


def test_the_tokens_in_use_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOKENS", 2)
    watcher = Watcher()
    assert [watcher.use(token) for token in (1, 2, 3, 2)] == [True, True, False, True]


def test_the_channel_carries_nothing(backend: ApiToken) -> None:
    """One notification of a transaction, whatever it changes; none of a last-used time, which changes all the time."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as listening:
        listening.execute(f"LISTEN {CHANNEL}")
        make_project("b")
        ApiToken.objects.update(seen_at=timezone.now())
        Flag.objects.update(stale=True)
        listening.execute(f"NOTIFY {CHANNEL}, 'end'")
        heard = [one.payload for one in listening.notifies(timeout=PATIENCE, stop_after=3)]
    assert heard == ["", "", "end"]


def test_with_a_replica_its_revisions_count(backend: ApiToken, monkeypatch: pytest.MonkeyPatch) -> None:
    """SDK answers are made from the replica, so what it does not know yet has not changed."""
    connect = replica_reader.connect
    asked: list[str] = []

    async def connect_replica(alias: str, name: str) -> Any:
        asked.append(alias)
        opened = await connect("default", name)
        await opened.execute("CREATE TEMP TABLE projects_projectrevision (project_id text, revision bigint)")
        await opened.execute("INSERT INTO projects_projectrevision VALUES ('behind', 1)")
        return opened

    async def work(watcher: Watcher) -> State:
        watcher.use(backend.pk)
        return await until(lambda: watcher.state)

    monkeypatch.setattr(replica_reader, "LATE", PATIENCE)
    monkeypatch.setattr(replica_reader, "has_replica", lambda: True)
    monkeypatch.setattr(replica_reader, "connect", connect_replica)
    state = watching(work)
    assert asked == ["replica"]
    assert state.revisions == {"behind": 1}
    assert state.tokens[backend.pk]


def test_without_its_replica_the_primary_counts_until_it_is_back(
    backend: ApiToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is back only when it has what SDKs have already got from the primary."""
    connect = replica_reader.connect
    kind = ["gone"]
    behind: asyncio.Future[Any]

    async def connect_replica(alias: str, name: str) -> Any:
        if kind == ["gone"]:
            raise OSError("connection refused")
        while kind == ["hanging"]:  # a canceled connection does not end either
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        opened = await connect("default", name)
        await opened.execute("CREATE TEMP TABLE projects_projectrevision (project_id text, revision int)")
        behind.set_result(opened)
        return opened

    async def work(watcher: Watcher) -> None:
        nonlocal behind
        behind = asyncio.Future()
        await until(lambda: watcher.state)
        assert replica.is_lost
        assert watcher.latest
        assert "shop" in watcher.latest.revisions
        for kind[0] in ("hanging", "behind"):
            await asyncio.sleep(5 * replica_reader.RETRY)
            assert replica.is_lost
            assert watcher.state
        kind[0] = "back"
        await (await behind).execute("DROP TABLE projects_projectrevision")
        await until(lambda: not replica.is_lost)
        await until(lambda: watcher.state)

    monkeypatch.setattr(replica_reader, "RETRY", 0.05)
    monkeypatch.setattr(replica_reader, "LATE", 0.2)
    monkeypatch.setattr(replica_reader, "has_replica", lambda: True)
    monkeypatch.setattr(replica_reader, "connect", connect_replica)
    watching(work)
    assert not reach.is_lost


@beside_watcher
async def test_a_commit_makes_everything_uncertain_until_it_is_read(
    watcher: Watcher, backend: ApiToken
) -> None:
    await until(lambda: watcher.state)
    commits.mark()
    assert watcher.state is None
    assert await until(lambda: watcher.state)


def test_a_database_that_hangs_counts_as_lost_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    read = module.read_state
    hanging = asyncio.Event()
    hanging.set()

    async def read_or_hang(*given: Any) -> State:
        while hanging.is_set():  # a canceled query does not end either
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return await read(*given)

    async def work(watcher: Watcher) -> None:
        await until(lambda: reach.is_lost)
        assert watcher.state is None
        monkeypatch.setattr(module, "LATE", PATIENCE)
        hanging.clear()
        await until(lambda: not reach.is_lost)

    monkeypatch.setattr(module, "read_state", read_or_hang)
    monkeypatch.setattr(module, "LATE", 0.01)
    watching(work)
    assert not reach.is_lost
