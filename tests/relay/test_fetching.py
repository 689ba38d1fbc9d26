"""When a relay asks for flags: what it is told of is never missed, and one question serves all who wait."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from relay.copy import Copy
from relay.flags import Flags, Texts
from relay.storage import Storage
from relay.tokens import Answer, Token, Tokens
from tests.support.event_loop import run
from tests.support.quick_loop import run_quickly
from tests.support.relay import BACKEND, flag
from tests.support.upstream import make_token

SECONDS = 5  # that an answer takes, or to take it over


class Upstream:
    """Answers with what its flag is called when it is asked, a while later."""

    def __init__(self) -> None:
        self.name, self.questions = "first", 0

    async def ask(self, method: str, path: str, **_: Any) -> Answer:
        if path == "/edge/validate":
            return Answer(200, {}, orjson.dumps({"tokens": [make_token(BACKEND, "client", "shop")]}))
        self.questions += 1
        document = {"version": 2, "features": [flag(self.name)]}
        await asyncio.sleep(SECONDS)
        return Answer(200, {"ETag": f'"{document}"'}, orjson.dumps(document))


class Busy(Copy):
    """Takes long to take over what it gets."""

    async def _take_over(self, flags: Flags, texts: Texts) -> None:
        await asyncio.sleep(SECONDS)
        await super()._take_over(flags, texts)


def follow(
    folder: Path, act: Callable[[Upstream, Copy, Token], Awaitable[None]], kind: type[Copy] = Copy
) -> None:
    upstream, storage = Upstream(), Storage(folder)
    tokens = Tokens(storage, upstream.ask)
    copy = kind(storage, upstream.ask, tokens, interval=3_600)

    async def live() -> None:
        token = await tokens.find(BACKEND)
        upstream.questions = 0
        await act(upstream, copy, token)

    run_quickly(live)
    storage.close()


def test_a_change_during_a_question_is_asked_for_again(tmp_path: Path) -> None:
    async def act(upstream: Upstream, copy: Copy, token: Token) -> None:
        asked = asyncio.ensure_future(copy.fetch(token))
        await asyncio.sleep(1)
        upstream.name = "second"
        await asyncio.gather(asked, *(copy.fetch(token, anew=True) for _ in range(3)))
        assert [each["name"] for each in copy.get(token.scope).features] == ["second"]
        assert upstream.questions == 2

    follow(tmp_path, act)


def test_what_is_to_be_looked_at_soon_is_looked_at_after_a_look_that_had_begun(tmp_path: Path) -> None:
    async def act(upstream: Upstream, copy: Copy, token: Token) -> None:
        keeping = asyncio.ensure_future(copy.keep_current())
        await asyncio.sleep(1)
        upstream.name = "second"
        copy.look_soon()
        await asyncio.sleep(4 * SECONDS)
        assert [each["name"] for each in copy.get(token.scope).features] == ["second"]
        keeping.cancel()

    follow(tmp_path, act)


def test_a_look_does_not_take_an_answer_that_was_asked_for_before(tmp_path: Path) -> None:
    async def act(upstream: Upstream, copy: Copy, token: Token) -> None:
        asked = asyncio.ensure_future(copy.fetch(token))
        await asyncio.sleep(1)
        upstream.name = "second"
        await asyncio.gather(asked, copy.look())
        assert [each["name"] for each in copy.get(token.scope).features] == ["second"]

    follow(tmp_path, act)


def test_all_who_wait_share_a_question(tmp_path: Path) -> None:
    async def act(upstream: Upstream, copy: Copy, token: Token) -> None:
        await asyncio.gather(*(copy.fetch(token) for _ in range(3)))
        assert upstream.questions == 1

    follow(tmp_path, act)


def test_half_of_the_time_is_left_to_others(tmp_path: Path) -> None:
    async def act(upstream: Upstream, copy: Copy, token: Token) -> None:
        seconds = asyncio.get_running_loop().time
        await asyncio.sleep(SECONDS)
        began = seconds()
        for _ in range(3):
            await copy.fetch(token)
        # Three answers, taken over, with a rest between two.
        assert 8 * SECONDS <= seconds() - began < 9 * SECONDS

    follow(tmp_path, act, Busy)


def test_the_part_of_a_project_is_made_once_and_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all who ask for it after a change: of megabytes, that takes a while."""
    wide, narrow = "*:development.wide-secret", "shop:development.web-secret"
    known = {wide: make_token(wide, "client", "*"), narrow: make_token(narrow, "frontend", "shop")}
    makers, make, storage = list[int](), Flags.narrowed, Storage(tmp_path)

    async def ask(method: str, path: str, *, body: Any = None, **_: Any) -> Answer:
        if path == "/edge/validate":
            return Answer(200, {}, orjson.dumps({"tokens": [known[secret] for secret in body["tokens"]]}))
        return Answer(200, {}, orjson.dumps({"features": [flag("a"), flag("b", "other")]}))

    def make_slowly(flags: Flags, projects: tuple[str, ...]) -> Flags:
        makers.append(threading.get_ident())
        time.sleep(0.05)
        return make(flags, projects)

    async def live() -> None:
        tokens = Tokens(storage, ask)
        copy = Copy(storage, ask, tokens, interval=3_600)
        await tokens.find(wide)
        token = await tokens.find(narrow)
        found = await asyncio.gather(*(copy.find(token) for _ in range(3)), copy.find_part(token.scope))
        assert [[each["name"] for each in flags.features] for flags in found] == [["a"]] * 4
        assert len(makers) == 1
        assert threading.get_ident() not in makers

    monkeypatch.setattr(Flags, "narrowed", make_slowly)
    run(live)
    storage.close()
