"""Streams of tokens: which are told, and which are ended when their token is no longer what it was."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sdk.delta.states import Scope
from sdk.streaming import scope_streams
from sdk.streaming.scope_streams import Listener
from sdk.watcher.state import State, TokenState
from sdk.watcher.token_streams import Subscription, TokenStreams
from sdk.watcher.watcher import Watcher
from tests.support.event_loop import in_loop, until

TOKEN = TokenState("backend", "development", True, "hash", None, ())
EVERYTHING = Scope("development", None)
SHOP = Scope("development", ("shop",))
OF_SHOP = replace(TOKEN, all_projects=False, scopes=((1, "shop"),))


class Stream:
    def __init__(self) -> None:
        self.ended: list[bytes] = []
        self.is_busy = False
        self.when_read: Callable[[], object] = lambda: None

    def end(self, farewell: bytes = b"") -> None:
        self.ended.append(farewell)


class Told:
    """An update that notes for which scopes it was called."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.listeners = 0
        self.failures = 0

    async def __call__(self, scope: Scope, listeners: Collection[Listener]) -> None:
        assert listeners
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the database is away")
        self.scopes.append(scope)
        self.listeners += len(listeners)


class World:
    """Two tokens with a stream each: token 1 sees everything, token 2 the shop."""

    def __init__(self) -> None:
        self.watcher, self.told = Watcher(), Told()
        self.streams = TokenStreams(self.watcher, self.told)
        self.all, self.shop = Stream(), Stream()
        self.see(State({"shop": 1, "docs": 1}, {1: TOKEN, 2: OF_SHOP}))
        self.close = [
            self.streams.opened(Subscription(1, "backend", "hash", None, EVERYTHING), self.all),
            self.streams.opened(Subscription(2, "backend", "hash", None, SHOP), self.shop),
        ]

    def see(self, state: State) -> None:
        before, self.watcher._state = self.watcher._state, state
        self.watcher._read_at = time.monotonic()
        for subscriber in self.watcher._subscribers:
            subscriber(before, state)

    async def changes(self, **changed: Any) -> list[Scope]:
        """The scopes that were told after this change of the state."""
        await self.all_told()
        self.told.scopes.clear()
        assert self.watcher._state
        self.see(replace(self.watcher._state, **changed))
        await self.all_told()
        return self.told.scopes

    async def all_told(self) -> None:
        await until(lambda: not self.streams._updating)


@in_loop
async def test_streams_are_told_of_changes_in_their_projects() -> None:
    world = World()
    await world.all_told()
    assert set(world.told.scopes) == {EVERYTHING, SHOP}  # opened: something may have changed meanwhile
    assert set(await world.changes(revisions={"shop": 2, "docs": 1})) == {EVERYTHING, SHOP}
    assert await world.changes(revisions={"shop": 2, "docs": 5}) == [EVERYTHING]
    assert await world.changes(revisions={"shop": 2}) == [EVERYTHING]
    world.close[0]()
    assert await world.changes(revisions={"shop": 3}) == [SHOP]
    world.close[1]()
    assert await world.changes(revisions={"shop": 4}) == []
    assert (world.all.ended, world.shop.ended) == ([], [])


@in_loop
async def test_a_busy_stream_is_told_when_its_client_has_read_enough() -> None:
    world = World()
    await world.all_told()
    world.shop.is_busy = True
    assert await world.changes(revisions={"shop": 2, "docs": 1}) == [EVERYTHING]
    world.shop.is_busy = False
    world.told.scopes.clear()
    world.shop.when_read()
    await world.all_told()
    assert world.told.scopes == [SHOP]


@in_loop
async def test_a_stream_that_is_opened_is_told_alone() -> None:
    world = World()
    await world.all_told()
    world.streams.opened(Subscription(2, "backend", "hash", None, SHOP), Stream())
    await world.all_told()
    assert (world.told.scopes.count(SHOP), world.told.listeners) == (2, 3)
    world.told.listeners = 0
    assert await world.changes(revisions={"shop": 2, "docs": 1})
    assert world.told.listeners == 3


@pytest.mark.parametrize(
    "other",
    [
        None,
        replace(OF_SHOP, scopes=((1, "shop"), (2, "docs"))),
        replace(OF_SHOP, scopes=()),
        replace(OF_SHOP, all_projects=True),
        replace(OF_SHOP, environment="production"),
        replace(OF_SHOP, secret_hash="another"),
        replace(OF_SHOP, kind="frontend"),
        replace(OF_SHOP, expires_at=datetime(2030, 1, 1, tzinfo=UTC)),
    ],
)
@in_loop
async def test_streams_of_a_changed_token_are_ended(other: TokenState | None) -> None:
    world = World()
    await world.changes(tokens={1: TOKEN, 2: other})
    assert (world.all.ended, len(world.shop.ended)) == ([], 1)


@in_loop
async def test_a_token_that_has_not_been_read_yet_is_left_alone() -> None:
    world = World()
    await world.changes(tokens={1: TOKEN})
    assert world.shop.ended == []


@in_loop
async def test_a_token_that_was_revoked_before_the_stream_was_opened() -> None:
    world, stream = World(), Stream()
    await world.changes(tokens={1: TOKEN, 2: OF_SHOP, 3: None})
    world.streams.opened(Subscription(3, "backend", "hash", None, SHOP), stream)
    assert stream.ended == [b""]


@in_loop
async def test_a_stream_ends_when_its_token_expires() -> None:
    world, stream, expired = World(), Stream(), Stream()
    now = datetime.now(UTC)
    world.streams.opened(Subscription(3, "backend", "hash", now + timedelta(hours=1), SHOP), stream)
    world.streams.opened(Subscription(3, "backend", "hash", now + timedelta(seconds=0.05), SHOP), expired)
    await until(lambda: expired.ended)
    assert stream.ended == []


@in_loop
async def test_a_token_that_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    world, stream = World(), Stream()
    monkeypatch.setattr(world.watcher, "use", lambda token: False)
    world.streams.opened(Subscription(3, "backend", "hash", None, SHOP), stream)
    assert stream.ended == [b"retry: 30000\n\n"]


@in_loop
async def test_what_could_not_be_told_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_streams, "TRY_AGAIN", 0.01)
    world = World()
    await world.all_told()
    world.told.failures = 3
    assert await world.changes(revisions={"shop": 1, "docs": 2}) == [EVERYTHING]
    assert world.told.failures == 0
